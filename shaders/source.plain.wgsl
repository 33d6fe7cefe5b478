// Activations that lie as they are, `[tokens, width]`.

fn load(token: u32, column: u32) -> f32 {
    return source[preparation.source + token * preparation.width + column];
}
