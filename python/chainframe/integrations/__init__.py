"""Framework integrations, imported by name: `chainframe.integrations.spark`."""
