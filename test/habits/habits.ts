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
  /** Nothing can be saved of it: what is wanted is a word. */
  warns?: boolean
}

export const HABITS: readonly Habit[] = [
  { name: 'hf_trainer', saveMs: 1_500 },
  { name: 'two_goes', saveMs: 800 },
  { name: 'in_place', saveMs: 700 },
  { name: 'tmp_rename', saveMs: 700 },
  { name: 'rename_directory', saveMs: 1_500 },
  { name: 'lightning_logs', directory: 'lightning_logs', saveMs: 300 },
  { name: 'config_first', saveMs: 400 },
  { name: 'log_inside', directory: 'out', saveMs: 300 },
  { name: 'metrics_beside' },
  { name: 'sharded', saveMs: 1_800 },
]
