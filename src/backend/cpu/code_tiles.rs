//! Keys and values as integers, in tiles of what one instruction takes: it adds the products of two pairs of numbers
//! to each of four lanes. The lanes are a key's positions or a value's columns, so that sums over tiles are what
//! attention wants, with no lanes to add and nothing to shuffle.

use super::cache::{BLOCK_TOKENS, WHAT};
use crate::Result;
use crate::float::largest;
use crate::quant::rounding::round_small;
use crate::quant::try_zeroed;
use bytemuck::Zeroable;

/// Lanes of a tile.
pub const LANES: usize = 4;
/// Integers of a lane.
pub const DEPTH: usize = 2;

pub type CodeTile<C> = [[C; DEPTH]; LANES];

/// An integer that keys and values are rounded to.
pub trait Code: Copy + Zeroable {
    /// Its largest magnitude.
    const MAX: i16;

    /// The lowest bits.
    fn from_i32(value: i32) -> Self;
}

impl Code for i16 {
    // Less than there is room for: products with queries of as many bits are summed in 32 bits.
    const MAX: i16 = 8191;

    fn from_i32(value: i32) -> Self {
        value as i16
    }
}

impl Code for i8 {
    const MAX: i16 = 127;

    fn from_i32(value: i32) -> Self {
        value as i8
    }
}

/// What the lanes of a tile are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lanes {
    /// Each has two columns of a position.
    Positions,
    /// Each has two positions of a column.
    Columns,
}

impl Lanes {
    /// Positions of a tile.
    fn positions(self) -> usize {
        match self {
            Lanes::Positions => LANES,
            Lanes::Columns => DEPTH,
        }
    }
}

/// The vectors of a block, `[kv_heads, BLOCK_TOKENS / positions of a tile, columns / those of a tile]` tiles.
#[derive(Debug, Clone)]
pub struct CodeTiles<C> {
    lanes: Lanes,
    tiles: Vec<CodeTile<C>>,
    /// What one unit is worth in each vector.
    units: Vec<f32>,
}

/// The first vectors of a head.
#[derive(Clone, Copy)]
pub struct HeadCodes<'a, C> {
    /// Up to the last tile that has one of them.
    pub tiles: &'a [CodeTile<C>],
    /// What one unit is worth in each vector, up to the last one of the last tile.
    pub units: &'a [f32],
    pub count: usize,
}

impl<C: Code> CodeTiles<C> {
    /// Zeros for `heads` heads, whose vectors are padded to a multiple of [`LANES`].
    pub fn zeroed(heads: usize, head_dim: usize, lanes: Lanes) -> Result<Self> {
        let vectors = heads * BLOCK_TOKENS;
        let tiles = vectors * head_dim.div_ceil(LANES) / DEPTH;
        Ok(Self { lanes, tiles: try_zeroed(tiles, WHAT)?, units: try_zeroed(vectors, WHAT)? })
    }

    /// Tiles that follow one another along a vector.
    fn across(&self) -> usize {
        self.tiles.len() * self.lanes.positions() / self.units.len()
    }

    /// Stores vector `index`: those of a head follow one another.
    pub fn store(&mut self, index: usize, vector: &[f32]) {
        let mut codes = vec![C::zeroed(); vector.len().next_multiple_of(LANES)];
        let unit = unit_for(largest(vector), C::MAX);
        self.units[index] = unit;
        round(vector, unit, &mut codes);
        let (positions, across) = (self.lanes.positions(), self.across());
        let (row, place) = (index / positions, index % positions);
        let tiles = &mut self.tiles[row * across..][..across];
        match self.lanes {
            Lanes::Positions => {
                tiles.iter_mut().zip(codes.as_chunks().0).for_each(|(tile, codes)| tile[place] = *codes);
            }
            Lanes::Columns => {
                for (tile, codes) in tiles.iter_mut().zip(codes.as_chunks::<LANES>().0) {
                    tile.iter_mut().zip(codes).for_each(|(lane, code)| lane[place] = *code);
                }
            }
        }
    }

    /// A head's first `count` vectors.
    pub fn of_head(&self, head: usize, count: usize) -> HeadCodes<'_, C> {
        let (positions, first) = (self.lanes.positions(), head * BLOCK_TOKENS);
        let rows = count.div_ceil(positions);
        HeadCodes {
            tiles: &self.tiles[first / positions * self.across()..][..rows * self.across()],
            units: &self.units[first..][..rows * positions],
            count,
        }
    }
}

/// What one unit is worth when `largest` is to become `max` at most.
pub fn unit_for(largest: f32, max: i16) -> f32 {
    let max = f32::from(max);
    largest.max(f32::MIN_POSITIVE * max) / max
}

/// Rounds to integers of which one is worth `unit`.
pub fn round<C: Code>(vector: &[f32], unit: f32, codes: &mut [C]) {
    let inverse = 1.0 / unit;
    for (code, value) in codes.iter_mut().zip(vector) {
        *code = C::from_i32(round_small(value * inverse));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_lie_along_their_tiles() {
        let vector = [1.0, -2.0, 3.0, -4.0, 127.0];
        for lanes in [Lanes::Positions, Lanes::Columns] {
            let mut tiles = CodeTiles::<i8>::zeroed(2, vector.len(), lanes).unwrap();
            let (head, slot) = (1, 6);
            tiles.store(head * BLOCK_TOKENS + slot, &vector);
            let of_head = tiles.of_head(head, slot + 1);
            assert_eq!((of_head.units[slot], of_head.count), (1.0, slot + 1));
            let rows = of_head.tiles.len() / tiles.across();
            assert_eq!(rows, (slot + 1).div_ceil(lanes.positions()));
            let last = &of_head.tiles[(rows - 1) * tiles.across()..];
            let codes: Vec<i8> = match lanes {
                Lanes::Positions => last.iter().flat_map(|tile| tile[slot % LANES]).collect(),
                Lanes::Columns => last.iter().flatten().map(|lane| lane[slot % DEPTH]).collect(),
            };
            assert_eq!(codes, [1, -2, 3, -4, 127, 0, 0, 0]);
            let all = of_head.tiles.as_flattened().as_flattened();
            assert_eq!(all.iter().filter(|code| **code != 0).count(), vector.len());
        }
    }
}
