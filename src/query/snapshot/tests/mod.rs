mod enumeration;
mod random;
mod world;
