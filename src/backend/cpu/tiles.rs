//! How a verb's work is split over threads: its output tensors are cut into tiles, and each tile is
//! written by the one thread that claimed it. The result does not depend on how many threads there are,
//! because no sum crosses a tile's border.

use super::pool::{MAX_PARTS, Pool, lock};
use super::tensor::CpuTensor;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes read by a tile that are worth a thread's while: some microseconds.
pub const TILE_BYTES: usize = 64 << 10;
/// Tiles a thread of a large job: what is left at its end, when one thread still works, is small.
const TILES_A_THREAD: usize = 64;
/// Columns of a tile are a multiple of this: groups of ternary rows stay whole, and so do slabs where
/// tiles are large.
const ALIGN: usize = 8;

/// The size of a tensor's tiles; the last ones may be smaller.
#[derive(Debug, Clone, Copy)]
pub struct TileShape {
    pub tokens: usize,
    pub columns: usize,
}

impl TileShape {
    /// Tiles of all tokens for a tensor of `columns` columns, each of which takes reading `bytes` bytes.
    pub fn for_columns(pool: &Pool, tokens: usize, columns: usize, bytes: usize) -> Self {
        let worth_while = TILE_BYTES.div_ceil(bytes.max(1));
        let fair = columns / (pool.active() * TILES_A_THREAD);
        // A power of two divides slabs.
        let wanted = worth_while.max(fair).max(ALIGN).next_power_of_two();
        let columns = if pool.active() == 1 || 2 * worth_while > columns { columns } else { wanted };
        Self { tokens, columns }
    }
}

/// A part of a tensor, for one thread to write.
pub struct Tile<'a> {
    pub tokens: Range<usize>,
    pub columns: Range<usize>,
    data: *mut f32,
    width: usize,
    tensor: PhantomData<&'a mut [f32]>,
}

impl Tile<'_> {
    /// The tile's columns of a token.
    pub fn row_mut(&mut self, token: usize) -> &mut [f32] {
        assert!(self.tokens.contains(&token));
        // SAFETY: the tile lies within its tensor (see `Grid::tile`), which is borrowed mutably for as long
        // as there are tiles, and no other tile has these elements.
        unsafe {
            let first = self.data.add(token * self.width + self.columns.start);
            std::slice::from_raw_parts_mut(first, self.columns.len())
        }
    }
}

/// A tensor that is cut into tiles.
struct Grid<'a> {
    data: *mut f32,
    tokens: usize,
    width: usize,
    shape: TileShape,
    tensor: PhantomData<&'a mut [f32]>,
}

// SAFETY: a grid only hands out tiles, and `for_tiles` hands out each tile once.
unsafe impl Sync for Grid<'_> {}

impl<'a> Grid<'a> {
    fn new(tensor: &'a mut CpuTensor, shape: TileShape) -> Self {
        let (tokens, width) = (tensor.tokens(), tensor.width());
        let shape = TileShape { tokens: shape.tokens.max(1), columns: shape.columns.max(1) };
        Self { data: tensor.data_mut().as_mut_ptr(), tokens, width, shape, tensor: PhantomData }
    }

    fn across(&self) -> usize {
        self.width.div_ceil(self.shape.columns)
    }

    fn len(&self) -> usize {
        self.across() * self.tokens.div_ceil(self.shape.tokens)
    }

    /// # Safety
    /// No two tiles of the same index exist at once.
    unsafe fn tile(&self, index: usize) -> Tile<'_> {
        assert!(index < self.len());
        let (down, across) = (index / self.across(), index % self.across());
        let part = |index: usize, size: usize, end: usize| index * size..end.min((index + 1) * size);
        Tile {
            tokens: part(down, self.shape.tokens, self.tokens),
            columns: part(across, self.shape.columns, self.width),
            data: self.data,
            width: self.width,
            tensor: PhantomData,
        }
    }
}

/// Gives every tile of the tensors to `body`, with the tensor's index, in one job of the pool.
pub fn for_tiles<const N: usize>(
    pool: &Pool,
    tensors: [(&mut CpuTensor, TileShape); N],
    body: impl Fn(usize, Tile<'_>) + Sync,
) {
    let grids = tensors.map(|(tensor, shape)| Grid::new(tensor, shape));
    let total: usize = grids.iter().map(Grid::len).sum();
    let do_tile = |mut index: usize| {
        for (which, grid) in grids.iter().enumerate() {
            if index < grid.len() {
                // SAFETY: the pool gives each part to one call, and the index is the part's alone.
                return body(which, unsafe { grid.tile(index) });
            }
            index -= grid.len();
        }
    };
    run(pool, total, do_tile);
}

/// Gives every item to `body`, with its index, in one job of the pool.
pub fn for_each<T: Send>(pool: &Pool, items: impl Iterator<Item = T>, body: impl Fn(usize, T) + Sync) {
    if pool.active() == 1 {
        return items.enumerate().for_each(|(index, item)| body(index, item));
    }
    let items: Vec<_> = items.map(|item| Mutex::new(Some(item))).collect();
    run(pool, items.len(), |index| {
        let item = lock(&items[index]).take();
        body(index, item.expect("an index is given once"));
    });
}

/// Calls `body` with the numbers below `total`, in one job of the pool.
fn run(pool: &Pool, total: usize, body: impl Fn(usize) + Sync) {
    // A part of more than one keeps very large jobs within the pool's limit.
    let size = total.div_ceil(MAX_PARTS).max(1);
    pool.run(total.div_ceil(size), &|part| (part * size..total.min((part + 1) * size)).for_each(&body));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_element_once() {
        for threads in [1, 3] {
            let pool = Pool::new(threads);
            for (tokens, columns) in [(1, 1), (1, 8), (2, 16), (7, 5), (100, 100)] {
                let mut a = CpuTensor::zeros(5, 23);
                let mut b = CpuTensor::zeros(3, 8);
                let shape = TileShape { tokens, columns };
                for_tiles(&pool, [(&mut a, shape), (&mut b, shape)], |which, mut tile| {
                    for token in tile.tokens.clone() {
                        let first = tile.columns.start;
                        for (index, value) in tile.row_mut(token).iter_mut().enumerate() {
                            *value += (1000 * which + 100 * token + first + index) as f32;
                        }
                    }
                });
                let wanted = |which: usize, tokens: usize, width: usize| -> Vec<f32> {
                    let value = |i: usize| (1000 * which + 100 * (i / width) + i % width) as f32;
                    (0..tokens * width).map(value).collect()
                };
                assert_eq!((a.data(), b.data()), (&wanted(0, 5, 23)[..], &wanted(1, 3, 8)[..]));
            }
        }
    }

    #[test]
    fn nothing_is_split_that_is_not_worth_it() {
        let pool = Pool::new(2);
        assert_eq!(TileShape::for_columns(&pool, 1, 256, 64).columns, 256);
        assert_eq!(TileShape::for_columns(&pool, 1, 2560, 640).columns, 128);
        assert_eq!(TileShape::for_columns(&pool, 1, 128_256, 5120).columns, 1024);
        assert_eq!(TileShape::for_columns(&Pool::new(1), 1, 128_256, 5120).columns, 128_256);
    }

    #[test]
    fn very_many_tiles_fit_a_job() {
        let mut tensor = CpuTensor::zeros(300, 300);
        let shape = TileShape { tokens: 1, columns: 1 };
        for_tiles(&Pool::new(2), [(&mut tensor, shape)], |_, mut tile| {
            let token = tile.tokens.start;
            tile.row_mut(token)[0] += 1.0;
        });
        assert!(tensor.data().iter().all(|value| *value == 1.0));
    }
}
