"""Everything that a job gets before its command starts: the bundle and its inputs."""
