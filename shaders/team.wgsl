// What kernels of linears know of the invocations that share their rows: teams divide the rows, the `lanes` of a
// team divide the columns. Each `team.*.wgsl` says what a team is.
struct Team {
    index: u32,
    lane: u32,
    lanes: u32,
}
