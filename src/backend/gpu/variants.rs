//! Which of several ways to compute the same product a device runs; chosen at load, not by its name.

use super::kernels::Constant;

/// Who shares the rows of a product with one token (`shaders/team.*.wgsl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Team {
    Lane,
    Subgroup,
    /// This many invocations of a workgroup.
    Workgroup(u32),
}

/// How one token is multiplied (`shaders/ternary_row.*.wgsl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Four bytes in one instruction, by teams.
    Packed(Team),
    /// As singles, in which sums of so many bytes are exact, by each invocation for itself.
    Singles,
}

/// How several tokens are multiplied (`shaders/ternary_tile.*.wgsl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiles {
    /// Four bytes in one instruction.
    Packed,
    /// As singles that hold two tokens each.
    Pairs,
    /// The same, where quads of invocations share what they load.
    SharedPairs,
}

/// Where the integer input of one token's product is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPreparation {
    /// By each workgroup of the product for itself, as far as its memory holds it: fewer dispatches.
    Inline,
    /// Once, in a dispatch of its own, for the largest products: less work.
    Separate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variants {
    pub rows: Rows,
    pub preparation: InputPreparation,
    pub tiles: Tiles,
}

impl Variants {
    pub fn needs_subgroups(self) -> bool {
        self.rows == Rows::Packed(Team::Subgroup) || self.tiles == Tiles::SharedPairs
    }
}

impl std::fmt::Display for Variants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let preparation = match self.preparation {
            InputPreparation::Inline => "inline",
            InputPreparation::Separate => "separate",
        };
        write!(f, "{} {preparation}, {} tiles", self.rows, self.tiles)
    }
}

/// Invocations of a workgroup in kernels of linears.
pub const WORKGROUP: u32 = 64;

impl Team {
    pub fn part(self) -> &'static str {
        match self {
            Team::Lane => "team.lane",
            Team::Subgroup => "team.subgroup",
            Team::Workgroup(_) => "team.workgroup",
        }
    }

    pub fn constants(self) -> Vec<(&'static str, Constant)> {
        let mut constants = vec![("WORKGROUP", Constant::Count(WORKGROUP))];
        if let Team::Workgroup(lanes) = self {
            constants.push(("LANES", Constant::Count(lanes)));
        }
        constants
    }

    /// Teams in a workgroup, on a device whose subgroups have `subgroup_size` invocations; a guess that costs
    /// speed, not results, where it is wrong.
    pub fn per_workgroup(self, subgroup_size: u32) -> u32 {
        match self {
            Team::Lane => WORKGROUP,
            Team::Subgroup => WORKGROUP / subgroup_size.clamp(1, WORKGROUP),
            Team::Workgroup(lanes) => WORKGROUP / lanes,
        }
    }
}

/// Columns whose sums are exact in singles: codes are 2 at most and digits 128, pairs of tokens come to less than
/// 3072 in eight columns, and singles hold 24 bits.
const MOST_SINGLE_COLS: usize = 40_000;

impl Rows {
    /// The same, or the one that is exact in rows of `cols` columns.
    pub fn within(self, cols: usize) -> Self {
        if cols <= MOST_SINGLE_COLS { self } else { Rows::Packed(self.team()) }
    }

    /// Who shares the rows of other products.
    pub fn team(self) -> Team {
        match self {
            Rows::Packed(team) => team,
            Rows::Singles => Team::Lane,
        }
    }
}

impl std::fmt::Display for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Rows::Packed(Team::Lane) => f.write_str("lane packed"),
            Rows::Packed(Team::Subgroup) => f.write_str("subgroup packed"),
            Rows::Packed(Team::Workgroup(lanes)) => write!(f, "workgroup/{lanes} packed"),
            Rows::Singles => f.write_str("singles"),
        }
    }
}

impl Tiles {
    /// The same, or the one that is exact in rows of `cols` columns.
    pub fn within(self, cols: usize) -> Self {
        if cols <= MOST_SINGLE_COLS { self } else { Tiles::Packed }
    }
}

impl std::fmt::Display for Tiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Tiles::Packed => "packed",
            Tiles::Pairs => "pairs",
            Tiles::SharedPairs => "shared pairs",
        })
    }
}
