/** Jobs of the last release continue on this version: its recorded histories and documents are replayed and read by today's code. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals'
import { Worker, type WorkflowBundleOption } from '@temporalio/worker'
import { quietWorkers } from '../support/temporal'
import { testWorkflowBundle } from '../support/workflow-bundle'
import { filesOf, newestRelease, unreadable, type FrozenFile, type FrozenRelease } from './release'

const ROOT = join(__dirname, '..', '..')
const { version: CURRENT } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  version: string
}
const newest = newestRelease(join(__dirname, 'releases'))

let workflowBundle: WorkflowBundleOption

beforeAll(async () => {
  quietWorkers()
  workflowBundle = await testWorkflowBundle()
})

/** Histories that this version cannot continue, each with the reason. */
async function stuck(files: FrozenFile[]): Promise<string[]> {
  const found: string[] = []
  for (const { path, text } of files) {
    await Worker.runReplayHistory({ workflowBundle }, JSON.parse(text)).catch((error: unknown) =>
      found.push(`${path}: ${String(error)}`),
    )
  }
  return found
}

describe('the newest frozen release', () => {
  const ofRelease = newest === undefined ? it.skip : it

  ofRelease('has histories that this version continues', async () => {
    const histories = filesOf(newest!, 'histories')
    expect(histories).not.toEqual([])
    expect(await stuck(histories)).toEqual([])
  })

  ofRelease('has documents that this version reads', async () => {
    expect(await unreadable(newest!)).toEqual([])
  })
})

describe('npm run freeze-release', () => {
  let copy: string
  const frozen = (): FrozenRelease => newestRelease(join(copy, 'test/replay/releases'))!
  const freeze = (...args: string[]): { code: number | null; output: string } => {
    const tool = join(ROOT, 'tools', 'freeze-release.mjs')
    const { status, stdout, stderr } = spawnSync(process.execPath, [tool, ...args], { encoding: 'utf8' })
    return { code: status, output: stdout + stderr }
  }
  /** Changes a file of the release, and restores it after the test has looked. */
  const withChange = async <T>(
    { path, change }: { path: string; change: (text: string) => string },
    look: () => Promise<T>,
  ): Promise<T> => {
    const file = join(frozen().folder, path)
    const text = readFileSync(file, 'utf8')
    expect(change(text)).not.toBe(text)
    writeFileSync(file, change(text))
    try {
      return await look()
    } finally {
      writeFileSync(file, text)
    }
  }

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), 'crucible-freeze-'))
    for (const path of ['package.json', 'test/replay/histories', 'test/replay/store', 'test/runner/golden'])
      cpSync(join(ROOT, path), join(copy, path), { recursive: true })
  })
  afterAll(() => rmSync(copy, { recursive: true, force: true }))

  it.each([
    ['no version', [], 'The version is missing. Run: npm run freeze-release --'],
    ['a version that is not that of package.json', ['9.9.9'], '"9.9.9" is not the version in package.json'],
    ['a path', ['../elsewhere'], 'is not the version in package.json'],
  ])('refuses %s and writes nothing', (_what, [version], complaint) => {
    const { code, output } = version === undefined ? freeze() : freeze(version, copy)
    expect(output).toContain(complaint)
    expect(code).toBe(2)
    expect(existsSync(join(copy, 'test/replay/releases'))).toBe(false)
  })

  it('copies histories, documents and the store of a job, once', async () => {
    expect(newestRelease(join(copy, 'test/replay/releases'))).toBeUndefined()
    expect(freeze(CURRENT, copy)).toMatchObject({ code: 0 })
    expect(frozen().version).toBe(CURRENT)
    expect(filesOf(frozen(), 'histories')).toHaveLength(
      readdirSync(join(ROOT, 'test/replay/histories')).length,
    )
    expect(filesOf(frozen(), 'documents').map(({ path }) => path)).toContain('documents/order-minimal.json')
    expect(filesOf(frozen(), 'documents').some(({ path }) => path.includes('invalid'))).toBe(false)
    expect(filesOf(frozen(), 'store').map(({ path }) => path)).toContain(
      'store/jobs/job-test/record/000001.json',
    )
    const again = freeze(CURRENT, copy)
    expect(again).toMatchObject({ code: 2 })
    expect(again.output).toContain('A frozen release never changes')
    expect(readdirSync(join(copy, 'test/replay/releases'))).toEqual([CURRENT])
  })

  it('keeps a release that this version continues and reads', async () => {
    const some = filesOf(frozen(), 'histories').filter(({ path }) => path.includes('succeeded'))
    expect(some).toHaveLength(2)
    expect(await stuck(some)).toEqual([])
    expect(await unreadable(frozen())).toEqual([])
  })

  it('shows a history with another step', async () => {
    const path = 'histories/attempt.succeeded.v1.json'
    const change = (text: string): string => text.replace(/"name":\s*"launch"/, '"name": "terminate"')
    const found = await withChange({ path, change }, () =>
      stuck(filesOf(frozen(), 'histories').filter((file) => file.path === path)),
    )
    expect(found).toEqual([expect.stringContaining(`${path}: DeterminismViolationError`)])
  })

  const job = 'store/jobs/job-test'
  it.each([
    ['documents/order-minimal.json', 'jobName', 'order'],
    [`${job}/attempts/1/lease.json`, 'ttlMs', 'lease'],
    [`${job}/checkpoints/000000000100-2/manifest.json`, 'step', 'manifest'],
    [`${job}/record/000001.json`, 'kind', 'not an entry of a record'],
    [`${job}/attempts/1/machine.json`, 'attemptId', 'machine cannot be read'],
  ])('shows that %s is read no more without its "%s"', async (path, field, complaint) => {
    const change = (text: string): string => text.replace(`"${field}"`, '"another"')
    const found = await withChange({ path, change }, () => unreadable(frozen()))
    expect(found).toEqual([expect.stringContaining(complaint)])
  })
})

describe('the newest of some releases', () => {
  it('is the one with the highest version, before which come its own pre-releases', () => {
    const folder = mkdtempSync(join(tmpdir(), 'crucible-releases-'))
    try {
      for (const version of ['0.9.1', '0.10.0', '0.10.0-rc.2', '0.2.0', '.unfinished-9'])
        cpSync(join(ROOT, 'test/replay/store/jobs/job-test/record'), join(folder, version), {
          recursive: true,
        })
      expect(newestRelease(folder)?.version).toBe('0.10.0')
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
