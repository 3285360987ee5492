import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  realpath,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { list } from 'tar'
import { BUNDLE_LIMITS, packBundle, type Bundle } from '../../storage/bundles'

const RUNNER = join(__dirname, '..', '..', 'runner')

let scratch: string
let root: string
let bundles: Bundle[]

beforeEach(async () => {
  scratch = await realpath(await mkdtemp(join(tmpdir(), 'crucible-exact-bundles-')))
  root = join(scratch, 'project')
  await mkdir(root)
  bundles = []
})
afterEach(async () => {
  await Promise.all(bundles.map((bundle) => bundle.remove()))
  await rm(scratch, { recursive: true, force: true })
})

async function write(files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
}

async function pack(): Promise<Bundle> {
  const bundle = await packBundle({ directory: root, leaveOut: [], limits: BUNDLE_LIMITS })
  bundles.push(bundle)
  return bundle
}

async function pathsIn(bundle: Bundle): Promise<string[]> {
  const paths: string[] = []
  await list({ file: bundle.path, onReadEntry: (entry) => paths.push(entry.path) })
  return paths
}

/** The folder as the runner unpacks it. */
async function unpacked(bundle: Bundle): Promise<string> {
  const out = await mkdtemp(join(scratch, 'out-'))
  const unpack =
    'import sys; from crucible_runner.inputs.bundle import unpack; unpack(open(sys.argv[1], "rb"), sys.argv[2])'
  execFileSync('python3', ['-c', unpack, bundle.path, out], {
    env: { PATH: process.env.PATH, PYTHONPATH: RUNNER },
  })
  return out
}

describe('a bundle', () => {
  it('keeps two names of one file, which are the same code as two files', async () => {
    await write({ two: 'same', 'more/one': 'x' })
    await link(join(root, 'two'), join(root, 'more', 'two'))
    const linked = await pack()
    const out = await unpacked(linked)
    expect((await stat(join(out, 'two'))).ino).toBe((await stat(join(out, 'more/two'))).ino)
    expect(await readFile(join(out, 'more/two'), 'utf8')).toBe('same')
    await rm(join(root, 'two'))
    await write({ two: 'same' })
    expect((await pack()).contentSha256).toBe(linked.contentSha256)
  })

  it('tells the difference that an executable bit makes', async () => {
    await write({ 'run.sh': '' })
    const plain = await pack()
    await chmod(join(root, 'run.sh'), 0o744)
    expect((await pack()).contentSha256).not.toBe(plain.contentSha256)
  })

  it('keeps permissions, and lets the owner change every file', async () => {
    await write({ key: '', data: '' })
    await chmod(join(root, 'key'), 0o600)
    await chmod(join(root, 'data'), 0o444)
    const out = await unpacked(await pack())
    const modes = await Promise.all(
      ['key', 'data'].map(async (name) => (await stat(join(out, name))).mode & 0o777),
    )
    expect(modes).toEqual([0o600, 0o644])
  })

  it('unpacks files in the order of their times, so that no output becomes older than its input', async () => {
    await write({ Makefile: '', 'a-output': '', 'z-input': '', 'b/newest': '', 'b/empty/x': '' })
    const times = { 'z-input': 1, Makefile: 2, 'b/empty/x': 3, 'a-output': 4, 'b/newest': 5 }
    for (const [path, at] of Object.entries(times)) await utimes(join(root, path), 1e9, 1e9 + at)
    expect((await pathsIn(await pack())).filter((path) => !path.endsWith('/'))).toEqual(Object.keys(times))
  })

  it('is unpacked with the times of its files and folders', async () => {
    await write({ stale: '', input: '' })
    await utimes(join(root, 'stale'), 1e9, 1_600_000_000.123)
    await utimes(join(root, 'input'), 1e9, 1_600_000_000.124)
    await write({ 'source/x': '' })
    await utimes(join(root, 'source'), 1e9, 1_600_000_000.125)
    const out = await unpacked(await pack())
    const times = ['stale', 'input', 'source'].map(async (name) =>
      Math.round((await stat(join(out, name))).mtimeMs),
    )
    expect(await Promise.all(times)).toEqual([1_600_000_000_123, 1_600_000_000_124, 1_600_000_000_125])
  })

  it('lets make on the machine repeat no step whose output is newer than its input', async () => {
    await write({
      Makefile:
        'prep.txt: raw.csv\n\techo AGAIN; cp raw.csv prep.txt\ntrain: prep.txt\n\techo training\n.PHONY: train\n',
      'prep.txt': 'prepared',
      'raw.csv': 'raw',
    })
    const times = { 'raw.csv': 1, 'prep.txt': 1.5 }
    for (const [path, at] of Object.entries(times)) await utimes(join(root, path), 1e9, 1e9 + at)
    const out = await unpacked(await pack())
    expect(execFileSync('make', ['-s', 'train'], { cwd: out, encoding: 'utf8' })).toBe('training\n')
  })

  it('leaves out names that are not UTF-8, and names them', async () => {
    await write({ 'train.py': '' })
    await writeFile(
      Buffer.concat([Buffer.from(`${root}/caf`), Buffer.from([0xe9]), Buffer.from('.txt')]),
      'x',
    )
    const folder = Buffer.concat([Buffer.from(`${root}/d`), Buffer.from([0xff])])
    await mkdir(folder)
    await writeFile(Buffer.concat([folder, Buffer.from('/x')]), 'x')
    await symlink(Buffer.from([0x74, 0xe9]), join(root, 'link'))
    const bundle = await pack()
    expect(await pathsIn(bundle)).toEqual(['train.py'])
    expect(bundle.warnings).toEqual([
      'Not sent, because their names are not UTF-8: caf\\xe9.txt, d\\xff, link -> t\\xe9. Rename what the program needs.',
    ])
  })

  it('sends empty folders, and links to them', async () => {
    await mkdir(join(root, 'logs', 'run'), { recursive: true })
    await symlink('logs/run', join(root, 'current'))
    const out = await unpacked(await pack())
    expect((await stat(join(out, 'current'))).isDirectory()).toBe(true)
    expect(await readdir(join(out, 'logs', 'run'))).toEqual([])
  })
})
