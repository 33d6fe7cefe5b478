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

/// How bytes are multiplied (`shaders/integer_dot.*.wgsl`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerDot {
    Packed,
    Plain,
}

/// Where the integer input of one token's product is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPreparation {
    /// By each workgroup of the product for itself, as far as its memory holds it: fewer dispatches.
    Inline,
    /// Once, in a dispatch of its own: less work.
    Separate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variants {
    pub team: Team,
    pub dot: IntegerDot,
    pub preparation: InputPreparation,
}

impl std::fmt::Display for Variants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let team = match self.team {
            Team::Lane => "lane".to_owned(),
            Team::Subgroup => "subgroup".to_owned(),
            Team::Workgroup(lanes) => format!("workgroup/{lanes}"),
        };
        let dot = match self.dot {
            IntegerDot::Packed => "packed",
            IntegerDot::Plain => "plain",
        };
        let preparation = match self.preparation {
            InputPreparation::Inline => "inline",
            InputPreparation::Separate => "separate",
        };
        write!(f, "{team} {dot} {preparation}")
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

impl IntegerDot {
    pub fn part(self) -> &'static str {
        match self {
            IntegerDot::Packed => "integer_dot.packed",
            IntegerDot::Plain => "integer_dot.plain",
        }
    }
}
