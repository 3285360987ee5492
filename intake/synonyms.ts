/** Names of fields in other schedulers, and their names here. */
export const SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['cmd', 'run'],
  ['command', 'run'],
  ['commands', 'run'],
  ['entrypoint', 'run'],
  ['docker', 'image'],
  ['container', 'image'],
  ['environment', 'env'],
  ['envs', 'env'],
  ['working_dir', 'workdir'],
  ['directory', 'workdir'],
  ['file_mounts', 'inputs'],
  ['data', 'inputs'],
  ['artifacts', 'outputs'],
  ['timeout', 'deadline'],
  ['max_duration', 'deadline'],
  ['price', 'budget'],
  ['max_cost', 'budget'],
  ['max_hourly_cost', 'max_price'],
  ['hourly_price', 'max_price'],
  ['region', 'regions'],
  ['zones', 'regions'],
  ['reservation_id', 'reservation'],
  ['capacity_reservation', 'reservation'],
  ['spot', 'interruptible'],
  ['use_spot', 'interruptible'],
  ['preemptible', 'interruptible'],
  ['retry', 'retries'],
  ['provider', 'backends'],
  ['cloud', 'backends'],
  ['gpu', 'resources.gpus'],
  ['gpu_type', 'resources.accelerators'],
  ['accelerator', 'resources.accelerators'],
  ['vcpus', 'resources.cpus'],
  ['ram', 'resources.memory'],
  ['vram', 'resources.gpu_memory'],
])

/** Remedies for fields of other schedulers that a job file has under no name. */
export const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['args', 'write them after the program, such as script: train.py --lr 3e-4'],
  ['schedule', 'remove it; `crucible schedule create retrain.yaml` runs a job on a calendar'],
])

/** Other words for intervals. */
export const INTERVALS: ReadonlyMap<string, string> = new Map([
  ['monthly', 'month'],
  ['1 month', 'month'],
  ['quarterly', 'quarter'],
  ['3 months', 'quarter'],
  ['6 months', 'half-year'],
  ['yearly', 'year'],
  ['12 months', 'year'],
])
