import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { Command } from 'commander'
import { Cli } from '../../../cli/cli'
import { addJobFlags } from '../../../cli/job/flags'
import { readJob } from '../../../cli/job/read-job'
import type { Submission } from '../../../client/job/submit'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../core/time/time'
import { putRecord } from '../../../storage/record'
import { NOW, SPEC } from '../../client/world'
import { World } from '../outside'
import { partialEntry } from '../../support/record'

let world: World
let cli: Cli

beforeEach(() => {
  world = new World()
  cli = new Cli(world.outside().outside, false)
})

afterEach(() => world.remove())

/** As `submit` reads its command line. */
function read(...args: string[]): Promise<Submission> {
  const command = new Command()
    .argument('[file]')
    .argument('[arguments...]')
    .option('--id <id>')
    .option('--from <job>')
    .option('--fresh')
  addJobFlags(command)
  command.exitOverride().parse(args, { from: 'user' })
  const [file, ...scriptArguments] = command.args
  return readJob(cli, { file, scriptArguments, flags: command.opts() })
}

function file(name: string, text: string): string {
  const path = join(world.home, name)
  writeFileSync(path, text)
  return path
}

describe('a job of a file', () => {
  it('keeps all that the file says of checkpoints', async () => {
    const lines = ['directory: out', 'every: 10m', 'size: 1.5GiB', 'complete: [DONE]', 'include: ["*.pt"]']
    lines.push('exclude: [cache]', 'quiet: 10s', 'signal: SIGUSR1', 'keep: 5')
    const job = file('job.yaml', `run: ./train\ncheckpoint:\n${lines.map((line) => `  ${line}\n`).join('')}`)
    expect((await read(job)).spec.checkpoint).toEqual({
      directory: 'out',
      everyMs: 600_000,
      sizeBytes: 1.5 * 2 ** 30,
      complete: ['DONE'],
      include: ['*.pt'],
      exclude: ['cache'],
      quietMs: 10_000,
      signal: 'SIGUSR1',
      keep: 5,
    })
  })
})

describe('a job of a script with flags', () => {
  it('has what the flags say, in the units of the job file', async () => {
    const script = file('train.py', '')
    const { spec } = await read(
      script,
      '--gpus',
      '2..8',
      '--gpu-memory',
      '24GiB..80GiB',
      '--accelerator',
      'a100',
      '--accelerator',
      'H100',
      '--cpus',
      '4',
      '--memory',
      '32GiB',
      '--duration',
      '6h',
      '--deadline',
      '36h',
      '--budget',
      '25',
      '--checkpoint-dir',
      'out',
      '--checkpoint-every',
      '10m',
      '--backend',
      'local:spot',
      '--optimize',
      'time',
      '--max-failures',
      '2',
      '--max-interruptions',
      '3',
      '--env',
      'A=1',
      '--env',
      'B=x=y',
      '--secret',
      'TOKEN',
      '--input',
      'data/a.bin=https://example.com/a',
      '--output',
      '*.bin',
      '--interruptible',
      '--setup',
      'true',
    )
    expect(spec).toEqual({
      name: 'train',
      run: 'python3 train.py',
      setup: 'true',
      inputs: [{ path: 'data/a.bin', source: 'https://example.com/a' }],
      resources: {
        gpus: { min: 2, max: 8 },
        gpuMemoryGiB: { min: 24, max: 80 },
        accelerators: ['A100', 'H100'],
        cpus: { min: 4 },
        memoryGiB: { min: 32 },
      },
      durationMs: 6 * HOUR_MS,
      isInterruptible: true,
      checkpoint: { directory: 'out', everyMs: 600_000 },
      deadlineAtMs: NOW + 36 * HOUR_MS,
      budgetMicroUsd: 25_000_000,
      backends: [{ backend: 'local', capacityType: 'spot' }],
      optimize: 'time',
      retries: { failures: 2, interruptions: 3 },
      env: { A: '1', B: 'x=y' },
      secrets: ['TOKEN'],
      outputs: ['*.bin'],
    })
  })

  it('runs it with its own arguments, each as it was given', async () => {
    const { spec, directory } = await read(file('my train.py', ''), '--', '--lr', '3e-4', "it's", '$HOME', '')
    expect(spec.run).toBe(`python3 'my train.py' --lr 3e-4 'it'\\''s' '$HOME' ''`)
    expect(directory).toBe(world.home)
  })

  it('reports every bad flag by its name', async () => {
    const attempt = read(file('train.py', ''), '--gpus', 'many', '--budget', 'lots', '--max-failures', 'x')
    await expect(attempt).rejects.toMatchObject({ kind: 'usage' })
    const { message } = (await attempt.catch((error: unknown) => error)) as Error
    for (const flag of ['--gpus "many"', '--budget "lots"', '--max-failures']) expect(message).toContain(flag)
  })
})

describe('a job file', () => {
  it('is changed by flags: some replace, some add', async () => {
    const path = file(
      'job.yaml',
      'run: x\nbudget: 5\nenv: {A: "1", B: "2"}\nsecrets: [ONE]\nbackends: [local]\ninputs: {a: "https://h/a", b: "https://h/b"}\n',
    )
    const { spec } = await read(
      path,
      '--budget',
      '7',
      '--env',
      'B=3',
      '--secret',
      'TWO',
      '--secret',
      'ONE',
      '--backend',
      'local:spot',
      '--input',
      'b=https://h/c',
    )
    expect(spec).toMatchObject({
      budgetMicroUsd: 7_000_000,
      env: { A: '1', B: '3' },
      secrets: ['ONE', 'TWO'],
      backends: [{ backend: 'local', capacityType: 'spot' }],
      inputs: [
        { path: 'a', source: 'https://h/a' },
        { path: 'b', source: 'https://h/c' },
      ],
    })
  })

  it.each([
    ['its own folder', '', [], (home: string) => home],
    ['the folder that it names', 'workdir: src\n', [], (home: string) => join(home, 'src')],
    ['nothing when it says so', 'workdir: false\n', [], () => null],
    ['nothing when the flag says so', '', ['--workdir', 'none'], () => null],
  ])('sends along %s', async (_what, text, flags, expected) => {
    mkdirSync(join(world.home, 'src'))
    const { directory } = await read(file('job.yaml', `run: x\n${text}`), ...flags)
    expect(directory).toBe(expected(world.home))
  })

  it('reads the same when it is repeated later with its id', async () => {
    const path = file('job.yaml', 'run: x\ndeadline: 2h\n')
    const submittedAtMs = NOW - HOUR_MS
    const data = { jobId: 'job-nightly', spec: SPEC, submittedAtMs }
    const submitted = partialEntry({ seq: 0, atMs: NOW, kind: 'submitted', summary: '', data })
    await putRecord(cli.context().store, 'job-nightly', submitted)
    expect((await read(path, '--id', 'job-nightly')).spec.deadlineAtMs).toBe(submittedAtMs + 2 * HOUR_MS)
  })
})

describe('a deadline', () => {
  const PRESENT = NOW - 40 * MINUTE_MS

  it.each([
    ['the time that the server shows if it is a duration', '2h', PRESENT + 2 * HOUR_MS],
    ['no time if it is an instant', '2026-11-22T12:00:00Z', NOW + DAY_MS],
  ])('counts from %s', async (_what, deadline, expected) => {
    const given = {
      file: file('job.yaml', `run: x\ndeadline: ${deadline}\n`),
      scriptArguments: [],
      flags: {},
    }
    expect((await readJob(cli, given, async () => PRESENT)).spec.deadlineAtMs).toBe(expected)
  })
})

describe('an earlier job', () => {
  it('is repeated with its own spec and code, and with what the flags change', async () => {
    const spec = { ...SPEC, budgetMicroUsd: 1_000_000, deadlineAtMs: NOW + HOUR_MS, env: { A: '1' } }
    const data = { jobId: 'job-first', spec, submittedAtMs: NOW }
    const submitted = partialEntry({ seq: 0, atMs: NOW, kind: 'submitted', summary: '', data })
    await putRecord(cli.context().store, 'job-first', submitted)
    const again = await read('--from', 'job-first', '--budget', '2')
    expect(again).toEqual({
      from: 'job-first',
      isAnalyzed: false,
      spec: { ...spec, budgetMicroUsd: 2_000_000 },
    })
    expect(await read('--from', 'job-first', '--fresh')).toEqual({
      from: 'job-first',
      isFresh: true,
      isAnalyzed: false,
      spec,
    })
    await expect(read('--from', 'job-none')).rejects.toMatchObject({ kind: 'not-found' })
  })
})

describe('a job file with an earlier job', () => {
  it('has the spec of the file, and continues from the job', async () => {
    const data = { jobId: 'job-first', spec: { ...SPEC, run: 'old' }, submittedAtMs: NOW }
    const entry = { seq: 0, atMs: NOW, kind: 'submitted' as const, summary: '', data }
    await putRecord(cli.context().store, 'job-first', partialEntry(entry))
    const path = file('job.yaml', 'name: new\nrun: python3 other.py\n')
    const submission = await read(path, '--from', 'job-first')
    expect(submission).toMatchObject({ from: 'job-first', spec: { name: 'new', run: 'python3 other.py' } })
    expect(submission.directory).toBe(world.home)
    await expect(read(path, '--fresh')).rejects.toMatchObject({ kind: 'usage', message: /--from/ })
  })
})

describe('what is no job', () => {
  it('is recognised as a batch script of Slurm, with its options', async () => {
    const path = file('train.sbatch', '#!/bin/bash\n#SBATCH --gpus=2\n#SBATCH -t 90\nsrun python train.py\n')
    await expect(read(path)).rejects.toMatchObject({
      kind: 'usage',
      message: `${path}: this is a Slurm batch script. Write a job file. There, the command is run: bash train.sbatch; --gpus is resources: { gpus: 2 }; -t is deadline: 90m.`,
    })
  })

  it.each([
    ['nothing', [], /Nothing to submit/],
    ['a file that is not there', ['job.yaml'], /There is no file job.yaml here/],
    ['a file whose name is not UTF-8', ['caf\uFFFD.yaml'], /name of caf.\.yaml is not UTF-8.* Rename it/],
    ['another kind of file', ['HOME/notes.txt'], /neither a job file/],
    ['arguments for a job file', ['HOME/job.yaml', '--', 'x'], /Only a script takes arguments.*: x\.$/],
    ['a folder', ['HOME'], /is a folder/],
    ['a variable without a value', ['HOME/job.yaml', '--env', 'X'], /not a name and a value/],
  ])('%s', async (_what, args, complaint) => {
    file('job.yaml', 'run: x\n')
    file('notes.txt', '')
    const attempt = read(...args.map((arg) => arg.replace('HOME', world.home)))
    await expect(attempt).rejects.toMatchObject({ kind: 'usage', message: expect.stringMatching(complaint) })
  })
})
