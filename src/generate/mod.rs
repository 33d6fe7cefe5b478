//! From logits to text.
