// Attention of one token that puts its own key and value into the cache first: the workgroup whose stretch
// ends with the token does it, and reads it back itself.

fn complete_cache(kv_head: u32, local: u32, is_last: bool) {
    if (is_last) {
        append(0u, kv_head, local, WORKGROUP);
    }
    storageBarrier();
}
