"""Personal models in other languages: written only after they were compared with ours."""
