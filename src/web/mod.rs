//! Everything that touches JavaScript.
