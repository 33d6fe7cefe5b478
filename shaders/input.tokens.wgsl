// What the kernels of several tokens know of their input, which each reads in its own way.

@group(0) @binding(5) var<storage, read> facts: array<vec4<u32>>;

fn input_facts(token: u32) -> vec4<u32> {
    return facts[token];
}
