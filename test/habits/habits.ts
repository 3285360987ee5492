/** One way of saving: `programs/NAME.py`, whose first line says what it is. */
export interface Habit {
  name: string
  /** The job's `checkpoint.directory`, where its program does not go by CRUCIBLE_CHECKPOINT_DIR. */
  directory?: string
  /** How long a save takes, about. */
  saveMs?: number
  /** How long after its end a save counts as complete, where the usual time does not do. */
  settleMs?: number
  /** The steps of the last attempt, where the usual ones hold no save. */
  lastSteps?: number
  /** The order's quiet time, where the usual one does not do: how soon a warning comes is counted in it. */
  quietMs?: number
  /** Nothing can be saved of it: what is wanted is a word. */
  warns?: boolean
}

export const HABITS: readonly Habit[] = [
  { name: 'hf_trainer', saveMs: 1_500 },
  { name: 'hf_one_kept', saveMs: 500 },
  { name: 'hf_best', saveMs: 300 },
  { name: 'hf_ranks', saveMs: 1_500 },
  { name: 'exact_tree' },
  { name: 'two_goes', saveMs: 800 },
  { name: 'in_place', saveMs: 700 },
  { name: 'tmp_rename', saveMs: 700 },
  { name: 'rename_directory', saveMs: 1_500 },
  { name: 'lightning_logs', directory: 'lightning_logs', saveMs: 300 },
  { name: 'config_first', saveMs: 400 },
  { name: 'log_inside', directory: 'out', saveMs: 300 },
  { name: 'wandb_offline', directory: 'out', saveMs: 300 },
  { name: 'metrics_beside' },
  { name: 'tensorboard', saveMs: 400 },
  { name: 'sqlite_beside', saveMs: 300 },
  { name: 'sqlite_state' },
  { name: 'sqlite_wal' },
  { name: 'results_jsonl' },
  { name: 'sharded', saveMs: 1_800 },
  { name: 'safetensors_index', saveMs: 1_800 },
  { name: 'torch_distributed', saveMs: 1_200 },
  { name: 'deepspeed', saveMs: 1_500 },
  { name: 'orbax_rename', saveMs: 1_200 },
  { name: 'orbax_marker', saveMs: 1_500 },
  { name: 'marker_file', saveMs: 1_500 },
  { name: 'tensorflow', saveMs: 1_100 },
  { name: 'keras_best_last', saveMs: 1_100 },
  { name: 'keras_h5', saveMs: 900 },
  { name: 'symlink_latest', saveMs: 1_500 },
  { name: 'a_b', saveMs: 700 },
  { name: 'best_and_last', saveMs: 1_100 },
  { name: 'best_only', saveMs: 500 },
  // A thousand files take a second or two to look at and to upload.
  { name: 'many_files', saveMs: 1_600, settleMs: 8_000, lastSteps: 34 },
  { name: 'delete_first', saveMs: 1_400 },
  { name: 'resume_moves' },
  { name: 'slow_save', saveMs: 2_600 },
  { name: 'disk_full' },
  { name: 'disk_full_crash' },
  { name: 'thread', saveMs: 700 },
  { name: 'child_process', saveMs: 700 },
  { name: 'npz', saveMs: 1_100 },
  { name: 'pickle_twice', saveMs: 1_100 },
  { name: 'torch_zip', saveMs: 1_100 },
  { name: 'two_in_place', saveMs: 800 },
  { name: 'four_in_place' },
  { name: 'folder_in_place', saveMs: 1_700 },
  { name: 'safetensors_two_goes', saveMs: 800 },
  { name: 'keep_previous', saveMs: 700 },
  { name: 'copytree', saveMs: 1_200 },
  { name: 'tar_archive', saveMs: 1_700 },
  { name: 'gzip_json' },
  { name: 'late_first', saveMs: 400 },
  { name: 'gaps', saveMs: 400, lastSteps: 70 },
  { name: 'epoch_names', saveMs: 500 },
  { name: 'time_names' },
  { name: 'hash_names' },
  { name: 'last_checkpoint', directory: 'output', saveMs: 800 },
  { name: 'sigterm_saves', saveMs: 500 },
  { name: 'sigterm_in_handler', saveMs: 700 },
  { name: 'sigterm_ignored', saveMs: 500 },
  { name: 'no_handler' },
  { name: 'memory_map', saveMs: 800 },
  { name: 'hydra_outputs', directory: 'outputs', saveMs: 400 },
  { name: 'xgboost_rounds', saveMs: 500 },
  { name: 'saves_elsewhere', warns: true },
  { name: 'never_saves', quietMs: 30, lastSteps: 120, warns: true },
]
