import { describe, expect, it } from '@jest/globals'
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as tar from 'tar'
import { readArtifact } from '../../storage/artifacts'
import { checkpointFileKey } from '../../storage/checkpoints'
import type { Checkpoint } from '../../core/job/checkpoint'
import type { JobSpec } from '../../core/job/job'
import { parsed } from '../intake/reading'
import { useWorlds, type Machine, type Wanted, type World } from '../runner/world'
import { testFolder } from '../support/folders'
import { until } from '../support/until'
import { IS_SELECTION, itInAll } from '../support/selection'
import { patient } from '../support/patience'

const createWorld = useWorlds()
const EXAMPLES = join(__dirname, '..', '..', 'examples')
const EXAMPLE = join(EXAMPLES, 'nanogpt')
const MANNER = join(__dirname, 'nanogpt-manner')
/** More iterations than an attempt gets to: no machine is so fast that it ends before it is interrupted. */
const ENDLESS = 1_000_000
/** A model that takes milliseconds for an iteration on one core; its dropout makes every random number count. */
const SMALL = '--eval_iters=2 --block_size=32 --batch_size=4 --n_layer=2 --n_head=2 --n_embd=32 --dropout=0.1'
/** For the start of PyTorch and the first checkpoint, on a machine that is busy with other tests. */
const LIMIT_MS = 60_000
const TEST_LIMIT_MS = 180_000
const INPUT = 'data/shakespeare_char/input.txt'

const python = pythonWithTorch()

/** The first Python that has what nanoGPT needs for its model of characters. */
function pythonWithTorch(): string | undefined {
  const candidates = [process.env['CRUCIBLE_TEST_PYTHON'], 'python3', '/usr/bin/python3']
  const ask = ['-c', 'import sys, torch, numpy, requests; print(sys.executable)']
  for (const candidate of candidates) {
    if (candidate === undefined) continue
    const { status, stdout } = spawnSync(candidate, ask, { encoding: 'utf8' })
    if (status === 0) return stdout.trim()
  }
  return undefined
}

function job(name: string): JobSpec {
  const { spec } = parsed(readFileSync(join(EXAMPLE, name), 'utf8'), name)
  return spec
}

/** The address of nanoGPT's archive in a job file, and the commit in it. */
function pinned({ inputs }: JobSpec): { path: string; commit: string } {
  for (const { source, path } of inputs) {
    const commit = /\/nanoGPT\/archive\/([0-9a-f]{40})\.tar\.gz$/.exec(source)?.[1]
    if (commit !== undefined) return { path, commit }
  }
  throw new Error('the job file does not name a commit of nanoGPT')
}

/** A program in the folder `nanoGPT`, with iterations between its saves that take longer than a checkpoint takes to be seen. */
interface Program {
  folder: string
  evalInterval: number
}

/** A folder with nanoGPT: the one that CRUCIBLE_NANOGPT names, otherwise a fresh clone if GitHub answers within seconds. */
function realNanoGpt(): string | undefined {
  const named = process.env['CRUCIBLE_NANOGPT']
  if (named !== undefined) {
    if (existsSync(join(named, 'train.py'))) return named
    throw new Error(`CRUCIBLE_NANOGPT must name a checkout of nanoGPT, and ${named} has no train.py`)
  }
  const folder = testFolder('nanogpt')
  const git = (...words: string[]): boolean => {
    const env = { ...process.env, GIT_TERMINAL_PROMPT: '0' }
    return spawnSync('git', ['-C', folder, ...words], { env, timeout: patient(5_000) }).status === 0
  }
  const { commit } = pinned(job('job-cpu.yaml'))
  const url = 'https://github.com/karpathy/nanoGPT'
  const isThere =
    git('init', '-q') && git('fetch', '-q', '--depth=1', url, commit) && git('checkout', '-q', 'FETCH_HEAD')
  return isThere ? folder : undefined
}

/** The files that the job file has downloaded, from this machine: nanoGPT packed as GitHub packs it, and a text. */
async function inputsOf(spec: JobSpec, nanoGpt: string): Promise<JobSpec['inputs']> {
  const folder = testFolder('nanogpt-inputs')
  const archive = join(folder, 'nanoGPT.tar.gz')
  const filter = (path: string): boolean => !/(^|\/)(\.git|data\/.*\.(txt|bin|pkl))$/.test(path)
  await tar.create({ gzip: true, cwd: nanoGpt, prefix: 'nanoGPT-at-a-commit', file: archive, filter }, ['.'])
  const text = join(folder, 'input.txt')
  copyFileSync(join(EXAMPLES, 'char-lm', 'text', 'sonnets.txt'), text)
  const { path } = pinned(spec)
  return spec.inputs.map((input) => ({
    path: input.path,
    source: pathToFileURL(input.path === path ? archive : text).href,
  }))
}

function environment(): Record<string, string> {
  return { PATH: `${dirname(python!)}${delimiter}${process.env['PATH'] ?? ''}`, OMP_NUM_THREADS: '1' }
}

/** Trains with train.py alone, without the launcher and without Crucible; the checkpoint that it ends with. */
function trainUndisturbed(nanoGpt: string, words: string): string {
  const folder = join(testFolder('nanogpt-alone'), 'nanoGPT')
  cpSync(nanoGpt, folder, { recursive: true })
  mkdirSync(dirname(join(folder, INPUT)), { recursive: true })
  copyFileSync(join(EXAMPLES, 'char-lm', 'text', 'sonnets.txt'), join(folder, INPUT))
  const options = { cwd: folder, env: { ...process.env, ...environment() }, stdio: 'pipe' } as const
  execFileSync(python!, ['data/shakespeare_char/prepare.py'], options)
  execFileSync('sh', ['-c', `${python!} train.py ${words} --out_dir=out`], options)
  return join(folder, 'out', 'ckpt.pt')
}

function digestOf(checkpoint: string): string {
  return execFileSync(python!, [join(MANNER, 'digest.py'), checkpoint], { encoding: 'utf8' })
}

/** Waits for the first checkpoint of this attempt. */
function untilCheckpoint(machine: Machine): Promise<void> {
  return until(async () => (await machine.beat())?.checkpoint?.attempt === machine.attempt, LIMIT_MS)
}

/** The iteration in the checkpoint itself; its number is a running one where the step was not certain when it was written. */
async function iterationOf(world: World, checkpoint: Checkpoint): Promise<number> {
  const [file] = (await world.manifest(checkpoint)).files
  const path = join(testFolder('nanogpt-checkpoint'), 'ckpt.pt')
  writeFileSync(path, (await world.store.get(checkpointFileKey(world.jobId, checkpoint, file!)))!)
  const iteration = /^iteration (\d+), /.exec(digestOf(path))?.[1]
  return Number(iteration)
}

/** Trains as job-cpu.yaml says, on two machines: the first is killed and the second gets notice. */
async function trainInterrupted(
  world: World,
  program: Program,
): Promise<{ iterations: number; words: string }> {
  const { folder, evalInterval } = program
  const spec = job('job-cpu.yaml')
  const run = (iterations: number): string =>
    `${spec.run} ${SMALL} --eval_interval=${evalInterval} --max_iters=${iterations}`
  const order: Wanted = {
    bundle: await world.bundle({ 'launch.py': readFileSync(join(EXAMPLE, 'launch.py'), 'utf8') }),
    inputs: await inputsOf(spec, folder),
    setup: spec.setup ?? null,
    outputs: spec.outputs,
    checkpoint: { directory: spec.checkpoint.directory ?? null, everyMs: 0, quietMs: 300, keep: 3 },
    env: { ...spec.env, ...environment() },
    run: run(ENDLESS),
  }
  const killed = await world.launch(order)
  await untilCheckpoint(killed)
  process.kill(killed.runner(), 'SIGKILL')
  await killed.exited

  const path = join(world.folder, 'notice.json')
  const noticed = await world.launch({ ...order, attempt: 2, notice: { kind: 'file', path } })
  await untilCheckpoint(noticed)
  writeFileSync(path, JSON.stringify({ terminateAtMs: Date.now() + patient(10_000) }))
  const stopped = await noticed.end()
  expect(stopped).toMatchObject({ outcome: 'stopped', reason: 'interrupted', restoredFrom: { attempt: 1 } })

  const iterations = (await iterationOf(world, stopped.checkpoint!)) + evalInterval
  const last = await world.launch({ ...order, attempt: 3, run: run(iterations) })
  expect(await last.end()).toMatchObject({ outcome: 'succeeded', restoredFrom: stopped.checkpoint })
  expect((await last.output()).join('\n')).toContain('Resuming training from')
  return { iterations, words: run(iterations).replace(/^.*launch\.py nanoGPT /, '') }
}

async function expectSameWeights(program: Program): Promise<void> {
  const world = createWorld()
  const { iterations, words } = await trainInterrupted(world, program)
  const interrupted = join(world.folder, 'interrupted.pt')
  writeFileSync(interrupted, (await readArtifact(world.store, world.jobId, 'out/ckpt.pt'))!)
  const digest = digestOf(interrupted)
  expect(digest).toMatch(new RegExp(`^iteration ${iterations}, `))
  expect(digestOf(trainUndisturbed(program.folder, words))).toBe(digest)
}

describe('the example nanogpt', () => {
  const withTorch = python === undefined ? itInAll.skip : itInAll
  const nanoGpt = python === undefined || IS_SELECTION ? undefined : realNanoGpt()
  const reason = ' (skipped: GitHub is out of reach, and CRUCIBLE_NANOGPT names no checkout of nanoGPT)'

  withTorch(
    'ends with the weights of an undisturbed train.py that saves in the manner of nanoGPT',
    () => expectSameWeights({ folder: MANNER, evalInterval: 1_500 }),
    TEST_LIMIT_MS,
  )

  ;(nanoGpt === undefined ? itInAll.skip : itInAll)(
    `ends with the weights of an undisturbed nanoGPT${nanoGpt === undefined ? reason : ''}`,
    () => expectSameWeights({ folder: nanoGpt!, evalInterval: 150 }),
    TEST_LIMIT_MS,
  )

  it.each(['job.yaml', 'job-cpu.yaml'])('has %s, which can be interrupted', (name) => {
    const spec = job(name)
    expect(spec).toMatchObject({ isInterruptible: true, checkpoint: { directory: 'out' } })
    expect(pinned(spec)).toEqual(pinned(job('job.yaml')))
  })
})
