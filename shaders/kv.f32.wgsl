// Keys and values as singles: a quad of a head's dimensions is one `vec4`.

alias Stored = vec4<f32>;

const HAS_UNITS = false;
const VECTOR = QUADS;

fn unit_for(largest: f32) -> f32 {
    return 1.0;
}

fn keep(quad: vec4<f32>, unit: f32) -> Stored {
    return quad;
}

fn keep_unit(unit: f32) -> Stored {
    return vec4(0.0);
}

fn kept(stored: Stored) -> vec4<f32> {
    return stored;
}

fn kept_unit(stored: Stored) -> f32 {
    return 1.0;
}
