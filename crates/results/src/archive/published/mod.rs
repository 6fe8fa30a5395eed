//! What was published with the logs, and whether the logs say the same.
