/** Speeds that a job can set for its disk: the limits of Amazon EBS gp3 volumes ("General Purpose SSD volumes", EBS user guide, 2026). */
export const DISK_MIB_PER_SECOND = { min: 125, max: 2_000 }
export const DISK_IOPS = { min: 3_000, max: 80_000 }
/** Operations per second that a disk needs for each MiB/s. */
export const IOPS_PER_MIB_PER_SECOND = 4
/** Most operations per second for each GiB. */
export const IOPS_PER_GIB = 500
