//! What the card's memory gives: a kernel that copies one buffer into another.

use std::time::Instant;

/// Bytes of the buffer: more than caches hold.
const BYTES: u64 = 256 << 20;
const COPIES: usize = 10;

const KERNEL: &str = "
    @group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
    @group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;

    @compute @workgroup_size(256)
    fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
        for (var at = id.x; at < arrayLength(&source); at += 256u * groups.x) {
            copied[at] = source[at];
        }
    }";

/// Bytes read and written, together, of the adapter that the backend opens too.
pub async fn bytes_per_second() -> f64 {
    let adapter = wgpu::Instance::default().request_adapter(&Default::default()).await.unwrap();
    let limits = adapter.limits();
    let bytes = BYTES.min(limits.max_storage_buffer_binding_size);
    let required_limits = wgpu::Limits {
        max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size,
        max_buffer_size: limits.max_buffer_size,
        ..Default::default()
    };
    let descriptor = wgpu::DeviceDescriptor { required_limits, ..Default::default() };
    let (device, queue) = adapter.request_device(&descriptor).await.unwrap();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(KERNEL.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: Default::default(),
        cache: None,
    });
    let buffers = [0, 1].map(|_| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    });
    let entries: Vec<_> = (0..)
        .zip(&buffers)
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
        .collect();
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    let run = |copies: usize| {
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        for _ in 0..copies {
            pass.dispatch_workgroups(4096, 1, 1);
        }
        drop(pass);
        queue.submit([encoder.finish()]);
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    };
    run(2);
    let start = Instant::now();
    run(COPIES);
    2.0 * bytes as f64 * COPIES as f64 / start.elapsed().as_secs_f64()
}
