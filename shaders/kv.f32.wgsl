// Keys and values as singles: a quad of a head's dimensions is one `vec4`.

alias Stored = vec4<f32>;

fn keep(quad: vec4<f32>) -> Stored {
    return quad;
}

fn kept(stored: Stored) -> vec4<f32> {
    return stored;
}
