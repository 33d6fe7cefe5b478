// The end of a choice: the token becomes the next step's input, and one that was said.

/// The position of the next step's first token, then its ids.
@group(0) @binding(3) var<storage, read_write> input: array<u32>;

fn finish(id: u32) {
    input[0] += params.tokens;
    input[1] = id;
    said[id / 32u] |= 1u << (id % 32u);
}
