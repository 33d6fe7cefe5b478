//! Devices behind one trait.
