mod enumeration;
mod world;
