"""The requests of the control plane to a machine, and the machine's reports."""
