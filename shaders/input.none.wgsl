// Kernels whose input needs no preparation.

fn prepare_input(local: u32) {
}
