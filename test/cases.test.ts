/** Small inputs that people tried with other tools and that once failed here: each kind, and the test that proves what is wanted. */
import { describe, expect, it } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JobSpec } from '../core/job/job'
import { parseJobFile } from '../intake/job-file'
import { formatProblem } from '../intake/problem'

const NOW = Date.UTC(2026, 10, 21, 12)

/** What is wanted of each kind, and where it is proved: a file of this folder, and a part of a test's name in it. */
const PROOFS: readonly [kind: string, file: string, test: string][] = [
  ['a failing line followed by a good one', 'runner/shell.test.ts', 'with the first line that fails'],
  ['a failure before || true', 'client/job/hidden-failures.test.ts', "['python train.py || true'"],
  ['a failure before a pipe to tee', 'runner/shell.test.ts', 'with the first part of a pipe that fails'],
  ['a Manager in a job with a long name', 'backends/local/job-users.test.ts', 'multiprocessing'],
  ['a job file below the root of a repository', 'storage/git.test.ts', 'its parents and of info/exclude'],
  [
    'a tracked file that a rule names',
    'storage/git.test.ts',
    'a tracked file is sent although a rule names it',
  ],
  [
    'code with a name that is not UTF-8',
    'storage/exact-bundles.test.ts',
    'leaves out names that are not UTF-8',
  ],
  ['a job file with such a name', 'cli/job/read-job.test.ts', 'a file whose name is not UTF-8'],
  ['an output with such a name', 'runner/odd-files.test.ts', 'may have names that no document can hold'],
  [
    'a log with such a name next to checkpoints',
    'runner/python/test_exact.py',
    'test_an_odd_name_beside_a_checkpoint',
  ],
  [
    'an empty secret, and one with a final newline',
    'client/job/preflight.test.ts',
    'an empty secret is refused',
  ],
  ['a secret that is not UTF-8', 'client/job/preflight.test.ts', 'the secret BYTES, which is not UTF-8 here'],
  ['a folder that make compares', 'storage/exact-bundles.test.ts', 'the times of its files and folders'],
  [
    'a line break in the name of a checkpoint file',
    'runner/python/test_exact.py',
    'test_a_path_with_a_line_break',
  ],
  [
    'an output with a name that the store refuses',
    'runner/python-s3/test_s3_store.py',
    'test_a_key_that_the_store_can_never_hold',
  ],
  ['steps of a Makefile', 'storage/exact-bundles.test.ts', 'lets make on the machine repeat no step'],
  ['line ends of Windows', 'client/job/scripts.test.ts', 'with the lines of Windows'],
  ['a missing execute bit', 'client/job/scripts.test.ts', 'chmod +x'],
  ['a best checkpoint that is not the newest', 'habits/habits.ts', "name: 'hf_best'"],
  ['the verdict of rehearse on it', 'habits/verdicts.ts', '...HABITS.map'],
  ['the same with the real libraries', 'habits/real.ts', "name: 'transformers_best'"],
  [
    'a rank that has not written its file',
    'runner/python/test_ranks.py',
    'test_the_number_of_processes_decides',
  ],
  [
    'a checkpoint of several files that is written all the time',
    'runner/python/test_hold.py',
    'test_is_stored_at_the_pace_of_the_job_and_from_one_save',
  ],
  ['$PATH in env', 'intake/job-file-problems.test.ts', 'export PATH=/opt/bin:$PATH'],
  ['an empty folder in a checkpoint', 'runner/python/test_exact.py', 'test_empty_folders_and_links_to_them'],
]

describe('what people tried', () => {
  it.each(PROOFS)('%s has its test in %s', (_, file, test) => {
    expect(readFileSync(join(__dirname, file), 'utf8')).toContain(test)
  })
})

const read = (lines: string): ReturnType<typeof parseJobFile> =>
  parseJobFile(lines, { fileName: 'job.yaml', nowMs: NOW })

/** Odd values that YAML has a meaning for. */
const TAKEN: readonly [lines: string, spec: Partial<JobSpec>][] = [
  ['name: 2024-01-01', { name: '2024-01-01' }],
  ['regions: us-east-1a', { regions: ['us-east-1a'] }],
  [
    'env: { A: 010, B: 1_000, C: 0x1F, D: yes, E: 1e3, F: 2024-01-01, G: 12:30:45, H: 1.10, I: .5, J: no }',
    {
      env: {
        A: '010',
        B: '1_000',
        C: '0x1F',
        D: 'yes',
        E: '1e3',
        F: '2024-01-01',
        G: '12:30:45',
        H: '1.10',
        I: '.5',
        J: 'no',
      },
    },
  ],
]

/** Odd values that are refused, with the remedy. */
const REFUSED: readonly [lines: string, remedy: string][] = [
  ['resources: { accelerators: "A100:8" }', 'Write A100 here, and gpus: 8.'],
  ['resources: { accelerators: { A100: 8 } }', 'accelerators: [ A10G, L4 ]'],
  ['resources: { gpus: all }', 'Write 4, 16+ (at least)'],
  ['resources: { memory: 32 }', 'Add its unit: 32GB or 32GiB.'],
  ['x-env: &e { A: 1e-3 }', 'x-env is not a field.'],
  ['budget: $1,000', 'Write $1000.'],
  ['budget: 20 EUR', 'is not an amount of US dollars'],
  ['budget: 20,50', 'is not an amount of US dollars'],
  ['checkpoint: { directory: /checkpoints }', 'Write a path relative to it'],
  ['checkpoint: { directory: . }', 'is not inside the working directory'],
  ['checkpoint: ../ck', 'must be a mapping of names to values'],
  ['commands:\n  - python train.py', 'Did you mean run?'],
  ['deadline: tomorrow 18:00', 'Write a date and time with its zone'],
  ['deadline: 2027-01-31 18:00', 'Write 2027-01-31 18:00Z for UTC'],
  ['deadline: 2027-02-30T18:00:00Z', 'is not in the calendar'],
  ['duration: 2-00:00:00', 'Write 2d.'],
  ['duration: 12:00:00', 'Write 12h.'],
  ['duration: 3600', 'Add its unit: 3600s'],
  ['env: { OUT: ${OUT:-/tmp/x} }', 'export OUT=${OUT:-/tmp/out}'],
  ['env:\n  HF_TOKEN: $HF_TOKEN', '--env HF_TOKEN="$HF_TOKEN"'],
  ['env:\n  DATA: ~/data', 'export DATA=~/data'],
  ['env:\n  WANDB_PROJECT:', 'Give it one, or remove it.'],
  ['interruptible: yes', 'Write true.'],
  ['name: run-$USER', '--name "run-$USER"'],
  ['name: 2024', 'Put it in quotes: "2024".'],
  ['name: team/exp 1', 'Write team-exp-1.'],
  ['outputs: [/tmp/out, ../x, ~/models]', 'outputs[2] "~/models" is not inside the working directory'],
  ['secrets: { HF_TOKEN: hf_abc }', 'secrets: [ HF_TOKEN ]'],
]

describe('a job file', () => {
  it.each(TAKEN)('with %s is taken as YAML says', (lines, spec) => {
    expect(read(`script: train.py\n${lines}\n`)).toMatchObject({ job: { spec } })
  })

  it.each(REFUSED)('with %s is refused with the remedy', (lines, remedy) => {
    const found = read(`script: train.py\n${lines}\n`)
    expect('problems' in found ? found.problems.map(formatProblem).join('\n') : found).toContain(remedy)
  })

  it.each([
    ['whose run is a list', 'run: [python3, train.py]\n', 'run must be a text, but is a list'],
    ['with a byte order mark', '\uFEFFscript: train.py\nrun2: x\n', 'job.yaml:2:1: run2 is not a field'],
    ['in UTF-16', Buffer.from('\uFEFFscript: train.py\n', 'utf16le').toString('utf8'), 'save it as UTF-8'],
  ])('%s is refused with the remedy', (_, text, remedy) => {
    const found = read(text)
    expect('problems' in found ? found.problems.map(formatProblem).join('\n') : found).toContain(remedy)
  })
})
