"""Doors to frameworks that are imported by name: `chainframe.integrations.spark`."""
