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

/// How codes and bytes are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerDot {
    /// Four bytes in one instruction.
    Packed,
    /// As singles, in which sums of so many bytes are exact.
    Singles,
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
    pub team: Team,
    pub dot: IntegerDot,
    pub preparation: InputPreparation,
    /// How several tokens are multiplied (`shaders/ternary_tile.*.wgsl`); the others are of one.
    pub tiles: IntegerDot,
}

impl std::fmt::Display for Variants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let team = match self.team {
            Team::Lane => "lane".to_owned(),
            Team::Subgroup => "subgroup".to_owned(),
            Team::Workgroup(lanes) => format!("workgroup/{lanes}"),
        };
        let preparation = match self.preparation {
            InputPreparation::Inline => "inline",
            InputPreparation::Separate => "separate",
        };
        write!(f, "{team} {} {preparation}, {} tiles", self.dot, self.tiles)
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

/// Columns whose sums are exact in singles: codes are 3 at most and digits 128, and singles hold 24 bits.
const MOST_SINGLE_COLS: usize = (1 << 24) / (3 * 128);

impl IntegerDot {
    /// The same, or the one that is exact in rows of `cols` columns.
    pub fn within(self, cols: usize) -> Self {
        if cols <= MOST_SINGLE_COLS { self } else { IntegerDot::Packed }
    }

    /// The files of `shaders/` for one token.
    pub fn row_parts(self) -> &'static [&'static str] {
        match self {
            IntegerDot::Packed => &["integer_dot.packed"],
            IntegerDot::Singles => &["singles", "integer_dot.singles"],
        }
    }
}

impl std::fmt::Display for IntegerDot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IntegerDot::Packed => "packed",
            IntegerDot::Singles => "singles",
        })
    }
}
