import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import type { MachineRecord } from '../../../backends/local/records'
import type { LogLine, RunnerOrder, RunnerResult } from '../../../core/documents'
import type { MachineHandle } from '../../../core/handle'
import { parseLogLine, parseResult } from '../../../intake/documents'
import { layout } from '../../../storage/layout'
import { readLines } from '../../../storage/logs'
import { until } from '../../support/until'
import { patiently } from '../harness'
import { newJobId } from '../orders'
import { LocalHarness, processesMarked } from './harness'
import { STAND_IN, useRealRunner } from './runners'

const realRunner = useRealRunner()
// A Python of the system: that of the tests may be in root's home.
const SYSTEM = '/usr/bin:/bin'
const isRoot = process.platform === 'linux' && process.getuid?.() === 0 && existsSync('/usr/bin/python3')
const asRoot = isRoot ? it : it.skip
if (!isRoot)
  process.stderr.write('Tests of users for jobs are skipped: they need root and /usr/bin/python3\n')

const KEY = 'a'.repeat(64)
let h: LocalHarness
beforeEach(async () => {
  h = await LocalHarness.make(realRunner(), {
    uids: { ...UIDS, isWanted: true },
    environment: { PATH: SYSTEM, HOME: '/root' },
  })
  h.backend = await h.reopen({}, { secretKeyOf: () => KEY })
})
afterEach(async () => {
  await h.dispose()
  // They are elsewhere than the rest, which is in a closed folder.
  for (const folder of folders.splice(0)) {
    for (const path of [folder, `${folder}.lock`]) rmSync(path, { recursive: true, force: true })
  }
})
const folders: string[] = []

interface Job {
  jobId: string
  attempt: number
  handle: MachineHandle
  machine: MachineRecord
}

async function start(
  run: string,
  wanted: { jobId?: string; attempt?: number; runner?: Partial<RunnerOrder> } = {},
): Promise<Job> {
  const { jobId = newJobId(), attempt = 1, runner = {} } = wanted
  const order = await h.order({ jobId, attempt, run, runner })
  const outcome = await h.backend.launch(order, patiently())
  if (outcome.kind !== 'launched') throw new Error(JSON.stringify(outcome))
  const path = join(h.root, 'machines', order.attemptId, 'machine.json')
  const machine = JSON.parse(readFileSync(path, 'utf8')) as MachineRecord
  if (machine.user !== undefined) folders.push(machine.user.folder)
  return { jobId, attempt, handle: outcome.handle, machine }
}

async function resultOf({ jobId, attempt }: Job): Promise<RunnerResult> {
  let body: Buffer | undefined
  await until(async () => (body = await h.store.get(layout.result(jobId, attempt))) !== undefined)
  return parseResult(body!.toString())
}

async function linesOf({ jobId, attempt }: Job): Promise<LogLine[]> {
  const lines: LogLine[] = []
  const range = { jobId, attempt, afterLine: 0, isOver: true }
  for await (const line of readLines(h.store, range, parseLogLine)) lines.push(line)
  return lines
}

async function outputOf(job: Job): Promise<string[]> {
  return (await linesOf(job)).filter(({ s }) => s === 'out').map(({ m }) => m)
}

/** Where the job keeps its things. */
const folderOf = ({ handle, machine }: Job): string =>
  machine.user?.folder ?? join(h.root, 'machines', handle.id)

/** A job that has something to lose, once it runs; the pid of its command. */
async function startVictim(): Promise<{ victim: Job; pid: number }> {
  const victim = await start('echo of-the-victim > mine.txt; exec sleep 600')
  const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  let pid: number | undefined
  await until(() => {
    pid = processesMarked(victim.handle.id).find((each) => commandOf(each).startsWith('sleep\0'))
    return pid !== undefined
  })
  return { victim, pid: pid! }
}

/** The default range. */
const UIDS = { first: 1_900_000_000, last: 1_900_065_535 }

describe('a local job next to a worker that is root', () => {
  asRoot("reads neither key, store, worker's environment nor other jobs' files", async () => {
    const { victim, pid } = await startVictim()
    const machine = join(h.root, 'machines', victim.handle.id)
    const attacks = [
      `cat ${machine}/secret.key && echo KEY`,
      `ls ${machine} && echo MACHINE`,
      `cat ${folderOf(victim)}/work/mine.txt && echo WORK`,
      `ls ${join(folderOf(victim), '..')} && echo NEIGHBOURS`,
      `ls ${h.directory}/store && echo STORE`,
      `cat /proc/${process.pid}/environ && echo WORKER`,
      `cat /proc/${pid}/environ && echo NEIGHBOUR`,
      `cat "$CRUCIBLE_CONTROL_DIR/../../secret.key" && echo OWN-KEY`,
      `ls "$CRUCIBLE_CONTROL_DIR/../tmp" && echo STAGING`,
    ]
    const attacker = await start([...attacks, 'echo done'].join('\n'))
    expect(await resultOf(attacker)).toMatchObject({ outcome: 'succeeded' })
    expect(await outputOf(attacker)).toEqual(['done'])
  })

  asRoot('ends no process of another job, of the runner or of the worker', async () => {
    const { victim, pid } = await startVictim()
    const runner = processesMarked(victim.handle.id).filter((each) => each !== pid)
    const attacks = [pid, ...runner, process.pid].map((each) => `kill -CONT ${each} && echo SENT ${each}`)
    const attacker = await start([...attacks, `kill -9 ${pid} && echo KILLED`, 'echo done'].join('\n'))
    expect(await resultOf(attacker)).toMatchObject({ outcome: 'succeeded' })
    expect(await outputOf(attacker)).toEqual(['done'])
    expect(processesMarked(victim.handle.id)).toContain(pid)
  })

  asRoot('gets no file of root as an artifact or into a checkpoint by a link', async () => {
    const secret = join(h.directory, 'root.txt')
    await writeFile(secret, 'of-root', { mode: 0o600 })
    const job = await start(
      [
        `ln -s ${secret} "$CRUCIBLE_OUTPUT_DIR/stolen.txt"`,
        `ln -s ${secret} "$CRUCIBLE_CHECKPOINT_DIR/step-1.json"`,
        'echo mine > "$CRUCIBLE_OUTPUT_DIR/mine.txt"',
      ].join('\n'),
    )
    const { outcome, artifacts, checkpoint } = await resultOf(job)
    expect({ outcome, checkpoint, kept: artifacts.map(({ path }) => path) }).toEqual({
      outcome: 'succeeded',
      checkpoint: null,
      kept: ['mine.txt'],
    })
    expect(await linesOf(job)).toContainEqual(
      expect.objectContaining({ m: expect.stringContaining('stolen.txt is not kept') }),
    )
  })

  asRoot('gets no rights back, and chooses no variable for a program of root', async () => {
    const job = await start('grep -E "^(Uid|Gid|Groups|NoNewPrivs|CapEff)" /proc/self/status; sleep 600', {
      runner: { env: { CHOSEN_BY_THE_JOB: 'yes' } },
    })
    const { uid } = job.machine.user!
    await until(async () => (await outputOf(job)).length === 5)
    const ids = `\t${[uid, uid, uid, uid].join('\t')}`
    const output = (await outputOf(job)).map((line) => line.trimEnd())
    expect(output).toEqual([
      `Uid:${ids}`,
      `Gid:${ids}`,
      'Groups:',
      'CapEff:\t0000000000000000',
      'NoNewPrivs:\t1',
    ])
    const choosing = processesMarked(job.handle.id).filter((pid) =>
      readFileSync(`/proc/${pid}/environ`, 'utf8').includes('CHOSEN_BY_THE_JOB'),
    )
    expect(new Set(choosing.map((pid) => statSync(`/proc/${pid}`).uid))).toEqual(new Set([uid]))
  })
})

describe('a job with a user of its own', () => {
  asRoot('has all that it needs: home, temporary files, outputs, and streams that it can open', async () => {
    const job = await start(
      [
        'set -e',
        'echo to-stream > /dev/stdout',
        'touch "$HOME/a" "$TMPDIR/b" "$CRUCIBLE_OUTPUT_DIR/c" "$CRUCIBLE_CHECKPOINT_DIR/../work/d"',
        `python3 -c 'import crucible_job, getpass, tempfile; crucible_job.progress(3, 3); print(getpass.getuser(), tempfile.gettempdir())'`,
      ].join('\n'),
    )
    expect(await resultOf(job)).toMatchObject({ outcome: 'succeeded', progress: { step: 3 } })
    expect(await outputOf(job)).toEqual(['to-stream', `crucible ${folderOf(job)}/t`])
    await h.backend.terminate(job.handle, patiently())
    expect(existsSync(folderOf(job))).toBe(false)
  })

  asRoot('continues from its checkpoint, which the next user may change', async () => {
    const save =
      'echo 1 > "$CRUCIBLE_CHECKPOINT_DIR/new" && mv "$CRUCIBLE_CHECKPOINT_DIR/new" "$CRUCIBLE_CHECKPOINT_DIR/step-1.txt"'
    const first = await start(save)
    expect(await resultOf(first)).toMatchObject({ outcome: 'succeeded', checkpoint: { step: 1 } })
    const again =
      'set -e; cat "$CRUCIBLE_RESUME_FROM"; echo more >> "$CRUCIBLE_RESUME_FROM"; stat -c %u "$CRUCIBLE_RESUME_FROM"'
    const second = await start(again, { jobId: first.jobId, attempt: 2 })
    expect(await resultOf(second)).toMatchObject({ outcome: 'succeeded' })
    expect(await outputOf(second)).toEqual(['1', String(second.machine.user!.uid)])
    expect(second.machine.user!.uid).not.toBe(first.machine.user!.uid)
  })

  asRoot(
    'can create Unix sockets in its folder for temporary files, whatever the name of the job',
    async () => {
      const jobId = `a-name-as-long-as-the-tracker-wants-it-${newJobId()}`.slice(0, 50)
      const manager = 'import multiprocessing as m; print(dict(m.Manager().dict(a=1)))'
      const job = await start(`python3 -c '${manager}'; echo \${#TMPDIR}; ls -A "$TMPDIR"`, { jobId })
      expect(await resultOf(job)).toMatchObject({ outcome: 'succeeded' })
      const [made, length] = await outputOf(job)
      expect([made, Number(length) <= 43]).toEqual(["{'a': 1}", true])
    },
  )

  asRoot('has one directory for all attempts, which ends with the last of them', async () => {
    const first = await start('echo 1 > mine.txt; pwd')
    await resultOf(first)
    const second = await start('ls -A; pwd; exec sleep 600', { jobId: first.jobId, attempt: 2 })
    await until(async () => (await outputOf(second)).length === 1)
    expect(await outputOf(second)).toEqual(await outputOf(first))
    expect(folderOf(second)).toBe(folderOf(first))
    await h.backend.terminate(first.handle, patiently())
    expect(existsSync(join(folderOf(second), 'work'))).toBe(true)
    await h.backend.terminate(second.handle, patiently())
    for (const path of [folderOf(second), `${folderOf(second)}.lock`]) expect(existsSync(path)).toBe(false)
  })

  asRoot('works below the root where other users get through to it', async () => {
    chmodSync(h.directory, 0o711)
    h.backend = await h.reopen({}, { secretKeyOf: () => KEY })
    const job = await start('pwd')
    await resultOf(job)
    expect(await outputOf(job)).toEqual([join(folderOf(job), 'work')])
    expect(folderOf(job)).toContain(join(h.root, 'jobs'))
    for (const each of ['machines', 'staging', 'ended']) {
      expect(statSync(join(h.root, each)).mode & 0o777).toBe(0o700)
    }
  })

  asRoot('learns which program its user may not run', async () => {
    const program = join(h.directory, 'closed')
    await writeFile(program, '#!/bin/sh\n', { mode: 0o755 })
    const job = await start(`cd . && ${program} --fast`)
    expect(await resultOf(job)).toMatchObject({
      outcome: 'failed',
      reason: 'setup',
      message: expect.stringMatching(
        /names .*closed, which the user of this job .* may not run.*CRUCIBLE_LOCAL_UIDS=no/,
      ),
    })
  })

  asRoot('learns why it may not change the system', async () => {
    const job = await start('touch /etc/of-a-job')
    expect(await resultOf(job)).toMatchObject({ outcome: 'failed' })
    expect(await linesOf(job)).toContainEqual(
      expect.objectContaining({
        s: 'runner',
        m: expect.stringMatching(/not as root.*CRUCIBLE_LOCAL_UIDS=no/),
      }),
    )
  })
})

describe('a runner from before users', () => {
  asRoot('is started as it knows', async () => {
    const old = await LocalHarness.make(STAND_IN, {
      uids: { ...UIDS, isWanted: true },
      environment: { PATH: SYSTEM },
    })
    try {
      const order = await old.order()
      expect(await old.backend.launch(order, patiently())).toMatchObject({ kind: 'launched' })
      expect(await old.startsOf(order.attemptId)).toBe(1)
    } finally {
      await old.dispose()
    }
  })
})

describe('a Python that only root may run', () => {
  const closed = (): Record<string, string> => {
    const folder = join(h.directory, 'venv')
    mkdirSync(folder, { mode: 0o700 })
    symlinkSync(
      execFileSync('sh', ['-c', 'command -v python3'], { encoding: 'utf8' }).trim(),
      join(folder, 'python3'),
    )
    return { PATH: `${folder}:${process.env['PATH']}`, HOME: h.directory }
  }

  asRoot('keeps jobs from users of their own, and doctor says why', async () => {
    h.backend = await h.reopen({ uids: { ...UIDS, isWanted: false }, environment: closed() })
    const [problem] = await h.backend.check(patiently())
    expect(problem).toMatchObject({
      severity: 'warning',
      message: expect.stringMatching(/^jobs without an image run as root.*venv\/python3/),
      remedy: expect.stringContaining('CRUCIBLE_LOCAL_UIDS=no'),
    })
    const job = await start('id -u')
    await resultOf(job)
    expect(await outputOf(job)).toEqual(['0'])
  })

  asRoot('is an error where users are wanted, before anything runs', async () => {
    h.backend = await h.reopen({ environment: closed() })
    const outcome = await h.backend.launch(await h.order(), patiently())
    expect(outcome).toMatchObject({
      kind: 'refused',
      failure: {
        class: 'invalid',
        message: expect.stringMatching(/separate users: .*venv\/python3/),
        hint: expect.stringContaining('CRUCIBLE_LOCAL_UIDS=no'),
      },
    })
    expect(readdirSync(join(h.root, 'machines'))).toEqual([])
  })
})
