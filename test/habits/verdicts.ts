import { HABITS } from './habits'

/** What `crucible rehearse` must say of one program. */
export interface Expected {
  name: string
  /** Its folder under `test`. */
  folder: 'habits' | 'rehearse'
  /** The job's `checkpoint.directory`. */
  directory?: string
  survives: boolean
  /** The check that must fail, where it does not survive. */
  check?: string
  /** A part of the first piece of advice. */
  advice?: string
  /** The line of the program that the first piece of advice must name. */
  line?: string
}

/** What the broken ones of the habits must be told; every other one survives. */
const BROKEN: Readonly<Record<string, Pick<Expected, 'check' | 'advice' | 'line'>>> = {
  saves_elsewhere: {
    check: 'Checkpoint files',
    advice: 'checkpoint:\n  directory: runs/exp1',
    line: 'train.py:8',
  },
  never_saves: { check: 'Checkpoint files', advice: 'Nothing was saved' },
}

/** Programs that are broken on purpose in ways that no habit has. */
const DELIBERATE: readonly Expected[] = [
  {
    name: 'ignores',
    folder: 'rehearse',
    survives: false,
    check: 'Right step',
    advice: 'did not load its checkpoint',
  },
  {
    name: 'loads_half',
    folder: 'rehearse',
    survives: false,
    check: 'Loss continues',
    advice: 'Load the weights and the state of the optimizer',
  },
  {
    name: 'resumes_from_best',
    folder: 'rehearse',
    survives: false,
    check: 'Right step',
    advice: 'did not load its checkpoint',
  },
  // A resume finds every checkpoint that the program had kept, and the first by name is the oldest.
  {
    name: 'wrong_file',
    folder: 'rehearse',
    survives: false,
    check: 'Right step',
    advice: 'did not load its checkpoint',
  },
  {
    name: 'refuses',
    folder: 'rehearse',
    survives: false,
    check: 'Resumes',
    advice: 'CRUCIBLE_RESUME_FROM',
  },
  {
    name: 'fails_at_once',
    folder: 'rehearse',
    survives: false,
    check: 'Runs undisturbed',
    advice: 'Make the program run on this machine first',
  },
  { name: 'random_numbers', folder: 'rehearse', survives: true },
]

/** The one table of verdicts: every habit, and the programs that are broken on purpose. */
export const EXPECTED: readonly Expected[] = [
  ...HABITS.map(({ name, directory }): Expected => ({
    name,
    folder: 'habits',
    survives: BROKEN[name] === undefined,
    directory,
    ...BROKEN[name],
  })),
  ...DELIBERATE,
]
