// Activations that go on without a norm.

fn norm_quad(column: u32) -> vec4<f32> {
    return vec4(1.0);
}
