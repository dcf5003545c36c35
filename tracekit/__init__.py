"""Event-sourced scheduling trace analyzer for Kubernetes."""
