import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals'
import fc from 'fast-check'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { extract, list } from 'tar'
import { BUNDLE_LIMITS, packBundle, storeBundle, type Bundle, type BundleLimits } from '../../storage/bundles'
import { markedStore } from '../support/marked-store'

const RUNNER = join(__dirname, '..', '..', 'runner')

let scratch: string
let root: string
let bundles: Bundle[]

beforeEach(async () => {
  scratch = await realpath(await mkdtemp(join(tmpdir(), 'crucible-bundles-')))
  root = join(scratch, 'project')
  await mkdir(root)
  bundles = []
})
afterEach(async () => {
  jest.restoreAllMocks()
  await Promise.all(bundles.map((bundle) => bundle.remove()))
  await rm(scratch, { recursive: true, force: true })
})

async function write(files: Record<string, string>, under = root): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(under, path)), { recursive: true })
    await writeFile(join(under, path), text)
  }
}

async function pack(
  options: { directory?: string; leaveOut?: string[]; limits?: Partial<BundleLimits> } = {},
): Promise<Bundle> {
  const bundle = await packBundle({
    directory: options.directory ?? root,
    leaveOut: options.leaveOut ?? [],
    limits: { ...BUNDLE_LIMITS, ...options.limits },
  })
  bundles.push(bundle)
  return bundle
}

async function pathsIn(bundle: Bundle): Promise<string[]> {
  const paths: string[] = []
  await list({ file: bundle.path, onReadEntry: (entry) => paths.push(entry.path) })
  return paths
}

async function packedFiles(options?: Parameters<typeof pack>[0]): Promise<string[]> {
  return (await pathsIn(await pack(options))).filter((path) => !path.endsWith('/')).sort()
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

async function refusal(options?: Parameters<typeof pack>[0]): Promise<string> {
  const error: unknown = await pack(options).then(
    () => new Error('it was packed'),
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ name: 'BundleError' })
  return (error as Error).message
}

describe('packBundle', () => {
  it('packs a folder into a file, and returns its digest, size and number of files', async () => {
    await write({ 'train.py': 'print(1)\n', 'lib/util.py': '', 'data/ünïcode name.txt': 'x'.repeat(1000) })
    await mkdir(join(root, 'empty'))
    await chmod(join(root, 'train.py'), 0o700)
    await utimes(join(root, 'train.py'), 0, 1_700_000_000.25)
    await utimes(join(root, 'lib/util.py'), 0, 0)
    const bundle = await pack()
    const body = await readFile(bundle.path)
    expect(bundle).toMatchObject({
      files: 3,
      sizeBytes: body.length,
      sha256: createHash('sha256').update(body).digest('hex'),
    })
    const out = join(scratch, 'out')
    await mkdir(out)
    await extract({ file: bundle.path, cwd: out })
    expect((await stat(join(out, 'train.py'))).mtimeMs).toBe(1_700_000_000_250)
    // Zip archives, as Python makes of packages, know no time before 1980.
    expect((await stat(join(out, 'lib/util.py'))).mtime).toEqual(new Date('1980-01-02T00:00:00Z'))
    expect(await readFile(join(out, 'train.py'), 'utf8')).toBe('print(1)\n')
    expect(await readFile(join(out, 'data/ünïcode name.txt'), 'utf8')).toHaveLength(1000)
    expect((await stat(join(out, 'train.py'))).mode & 0o111).not.toBe(0)
    expect((await stat(join(out, 'lib/util.py'))).mode & 0o111).toBe(0)
    expect((await stat(join(out, 'empty'))).isDirectory()).toBe(true)
  })

  it('is unpacked by the runner as it was', async () => {
    const long = `${'deep/'.repeat(40)}${'ü'.repeat(60)}.txt`
    await write({ 'a/b.txt': 'b', [long]: 'long', 'run.sh': '#!/bin/sh\n' })
    await chmod(join(root, 'run.sh'), 0o755)
    await symlink('../a/b.txt', join(root, 'a', 'self'))
    await symlink(join(root, 'a'), join(root, 'absolute'))
    await symlink(long, join(root, 'far'))
    const out = await unpacked(await pack())
    expect(await readFile(join(out, long), 'utf8')).toBe('long')
    expect(await readFile(join(out, 'far'), 'utf8')).toBe('long')
    expect(await readFile(join(out, 'a/self'), 'utf8')).toBe('b')
    expect(await readFile(join(out, 'absolute/b.txt'), 'utf8')).toBe('b')
    expect(await readlink(join(out, 'absolute'))).toBe('a')
    expect((await stat(join(out, 'run.sh'))).mode & 0o111).toBe(0o111)
  })

  it('gives the same digest of the content, whatever times, modes and order', async () => {
    const name = fc
      .string({ unit: fc.constantFrom('a', 'b', '-', '.', 'ü', ' '), minLength: 1, maxLength: 8 })
      .filter((text) => !/^\.+$/.test(text) && !text.startsWith('.'))
    const tree = fc.dictionary(
      fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/')),
      fc.string({ maxLength: 600 }),
      {
        maxKeys: 8,
      },
    )
    let run = 0
    await fc.assert(
      fc.asyncProperty(tree, fc.infiniteStream(fc.nat(0o177)), async (files, modes) => {
        const paths = Object.keys(files)
        fc.pre(!paths.some((path) => paths.some((other) => other.startsWith(`${path}/`))))
        const folder = join(scratch, String(run++))
        await write(files, join(folder, 'one'))
        for (const path of paths.reverse())
          await write({ [path]: files[path]! }, join(folder, 'two', 'deeper'))
        await mkdir(join(folder, 'one'), { recursive: true })
        await mkdir(join(folder, 'two', 'deeper'), { recursive: true })
        for (const path of paths) {
          await utimes(join(folder, 'one', path), Number(modes.next().value), 1e9)
          await chmod(join(folder, 'one', path), 0o600 | (Number(modes.next().value) & 0o066))
        }
        const one = await pack({ directory: join(folder, 'one') })
        const two = await pack({ directory: join(folder, 'two', 'deeper') })
        expect(one.contentSha256).toBe(two.contentSha256)
        expect(one.files).toBe(paths.length)
        if (paths.length === 0) return
        await writeFile(join(folder, 'one', paths[0]!), `${files[paths[0]!]}!`)
        expect((await pack({ directory: join(folder, 'one') })).contentSha256).not.toBe(two.contentSha256)
      }),
      { numRuns: 30 },
    )
  })

  it.each(['', 'more than before'])(
    'removes its temporary file when asked, and at once when a file becomes %j',
    async (text) => {
      await write({ a: 'as before' })
      const bundle = await pack()
      await bundle.remove()
      await expect(stat(bundle.path)).rejects.toMatchObject({ code: 'ENOENT' })
      const lstat = fs.lstat
      jest.spyOn(fs, 'lstat').mockImplementationOnce(async (path) => {
        const before = await lstat(path)
        await fs.writeFile(path, text)
        return before
      })
      const temporary = process.env.TMPDIR
      process.env.TMPDIR = scratch
      try {
        expect(await refusal()).toContain('a changed while it was packed')
        expect(await readdir(scratch)).toEqual(['project'])
      } finally {
        if (temporary === undefined) delete process.env.TMPDIR
        else process.env.TMPDIR = temporary
      }
    },
  )

  it.each([
    ['before', 'lstat'],
    ['before', 'readdir'],
    ['before', 'readFile'],
    ['after', 'readFile'],
  ] as const)('names the file that disappeared %s %s, and says to try again', async (when, call) => {
    await write({ 'tmp/step': '' })
    const gone = join(root, call === 'readdir' ? 'tmp' : 'tmp/step')
    const original = fs[call] as (path: string, ...others: unknown[]) => Promise<unknown>
    jest.spyOn(fs, call).mockImplementation((async (path: string, ...others: unknown[]) => {
      const vanish = (): Promise<void> =>
        join(path, '.') === gone ? rm(gone, { recursive: true }) : Promise.resolve()
      if (when === 'before') await vanish()
      const answer = await original(path, ...others)
      if (when === 'after') await vanish()
      return answer
    }) as never)
    const message = `The folder ${root} cannot be packed: ${gone} disappeared meanwhile. Try again`
    expect(await refusal()).toContain(message)
  })

  it('names the folder that it may not read', async () => {
    await write({ 'a/b': '' })
    const readFolder = fs.readdir as (path: string, options: unknown) => Promise<unknown>
    jest
      .spyOn(fs, 'readdir')
      .mockImplementation(((path: string, options: unknown) =>
        path.endsWith('/a/')
          ? Promise.reject(Object.assign(new Error('no'), { code: 'EACCES', path }))
          : readFolder(path, options)) as typeof fs.readdir)
    const message = await refusal()
    expect(message).toContain(join(root, 'a'))
    expect(message).toMatch(/permission denied.*Or name it in \.crucibleignore\./)
  })

  it('names the file that it may not read', async () => {
    await write({ a: '' })
    jest
      .spyOn(fs, 'readFile')
      .mockImplementation((async (path: string) =>
        path.endsWith('ignore')
          ? ''
          : Promise.reject(Object.assign(new Error('no'), { code: 'EACCES', path }))) as typeof fs.readFile)
    expect(await refusal()).toMatch(/pack .*\/a: permission denied.*Or name it in \.crucibleignore\./)
  })

  it('leaves out sockets and pipes', async () => {
    await write({ a: '' })
    execFileSync('mkfifo', [join(root, 'pipe')])
    expect(await packedFiles()).toEqual(['a'])
  })

  it('says which folder is missing', async () => {
    expect(await refusal({ directory: join(root, 'none') })).toBe(
      `There is no folder ${join(root, 'none')} to send along: correct workdir.`,
    )
    await write({ file: '' })
    expect(await refusal({ directory: join(root, 'file') })).toContain('is not a folder')
  })
})

describe('the selection of files', () => {
  it('excludes files that never work elsewhere', async () => {
    await write({
      'a.py': '',
      '.git/config': '',
      'sub/.git/HEAD': '',
      '__pycache__/a.pyc': '',
      'a.pyc': '',
      'node_modules/x/index.js': '',
      '.ipynb_checkpoints/a': '',
      'venv/pyvenv.cfg': '',
      'venv/lib/x.py': '',
      'deep/my env/pyvenv.cfg': '',
      'deep/my env/bin/y': '',
      'deep/venv/kept.py': '',
    })
    expect(await packedFiles()).toEqual(['a.py', 'deep/venv/kept.py'])
  })

  it('includes files that .crucibleignore asks for, except version control', async () => {
    await write({
      'node_modules/x.js': '',
      '.git/config': '',
      'venv/pyvenv.cfg': '',
      '.crucibleignore': '!node_modules/\n!.git/\n!venv/\n',
    })
    expect(await packedFiles()).toEqual(['.crucibleignore', 'node_modules/x.js', 'venv/pyvenv.cfg'])
  })

  it('excludes files that .gitignore and .crucibleignore name, also nested ones', async () => {
    await write({
      '.gitignore': '*.log\n/data/\nout\n# comment\n',
      '.crucibleignore': 'notes.md\r\n!keep.log\r\n',
      'a.log': '',
      'keep.log': '',
      'notes.md': '',
      'data/x': '',
      'sub/data/y': '',
      'sub/out/z': '',
      'sub/.gitignore': '*.tmp\n!wanted.log\n',
      'sub/a.tmp': '',
      'sub/wanted.log': '',
      'sub/other.log': '',
      'a.tmp': '',
    })
    expect(await packedFiles()).toEqual([
      '.crucibleignore',
      '.gitignore',
      'a.tmp',
      'keep.log',
      'sub/.gitignore',
      'sub/data/y',
      'sub/wanted.log',
    ])
  })

  it('lets .crucibleignore ask for a folder that Git ignores, with what is in it', async () => {
    await write({
      '.gitignore': 'data/\n*.bin\n',
      '.crucibleignore': '!data/\n',
      'data/deep/x.txt': '',
      'data/y.bin': '',
    })
    expect(await packedFiles()).toEqual(['.crucibleignore', '.gitignore', 'data/deep/x.txt'])
  })

  it('lets an inner ignore file keep a folder that an outer one leaves out', async () => {
    await write({ '.gitignore': 'build\n', 'a/.gitignore': '!build\n', 'a/build/x': '', 'b/build/x': '' })
    expect(await packedFiles()).toEqual(['.gitignore', 'a/.gitignore', 'a/build/x'])
  })

  it('distinguishes letter case on every system', async () => {
    await write({ '.gitignore': 'Data\n', 'Data/x': '', 'other/data/x': '' })
    expect(await packedFiles()).toEqual(['.gitignore', 'other/data/x'])
  })

  it('excludes files that the caller names', async () => {
    await write({ 'ckpt/runs/1.pt': '', 'ckpt/code.py': '', 'a.py': '' })
    expect(await packedFiles({ leaveOut: ['ckpt/runs'] })).toEqual(['a.py', 'ckpt/code.py'])
  })
})

describe('links', () => {
  it('that lead out of the folder are named, and nothing is packed', async () => {
    await write({ 'a/x': '' })
    await symlink('/etc', join(root, 'etc'))
    await symlink('../../elsewhere', join(root, 'a', 'up'))
    await symlink('etc/hosts', join(root, 'through'))
    const message = await refusal()
    expect(message).toContain('links to files outside it')
    expect(message).toContain('  etc -> /etc\n')
    expect(message).toContain('  a/up -> ../../elsewhere\n')
    expect(message).toContain('  through -> etc/hosts\n')
    expect(message).toContain('Name them in .crucibleignore')
  })

  it('that lead out may be ignored, written with a slash or without', async () => {
    await symlink('/etc', join(root, 'data'))
    await symlink('/etc', join(root, 'more'))
    await write({ '.gitignore': 'data/\nmore\n' })
    expect(await packedFiles()).toEqual(['.gitignore'])
  })

  it('that lead back in by a way around are kept as the short way', async () => {
    await write({ 'a/x': '' })
    await symlink('../project/a/x', join(root, 'around'))
    await symlink('nothing', join(root, 'dangling'))
    await symlink('.', join(root, 'a', 'here'))
    const bundle = await pack()
    const targets: Record<string, string> = {}
    await list({
      file: bundle.path,
      onReadEntry: (entry) => {
        if (entry.type === 'SymbolicLink') targets[entry.path] = entry.linkpath ?? ''
      },
    })
    expect(targets).toEqual({ around: 'a/x', dangling: 'nothing', 'a/here': '.' })
  })

  it('are not followed into loops, and a folder reached by a link can be packed', async () => {
    await write({ 'a/x': '' })
    await symlink('..', join(root, 'a', 'loop'))
    await symlink(root, join(scratch, 'alias'))
    expect(await packedFiles({ directory: join(scratch, 'alias') })).toEqual(['a/loop', 'a/x'])
  })
})

describe('files that look like secrets', () => {
  const key = ['-----BEGIN', ' OPENSSH PRIVATE KEY-----\nabc\n-----END', ' OPENSSH PRIVATE KEY-----\n'].join(
    '',
  )

  it.each([
    ['.env', 'A=1'],
    ['conf/.env.production', 'A=1'],
    ['cert.pem', 'whatever'],
    ['credentials', ''],
    ['app_credentials.json', '{}'],
    ['.netrc', ''],
    ['.aws/config', ''],
    ['home/.ssh/known_hosts', ''],
    ['id_ed25519', ''],
    ['keys/deploy', key],
    ['account.json', `{"private_key": ${JSON.stringify(key)}}`],
    ['.npmrc', '//registry.example.com/:_authToken=abc'],
  ])('such as %s are named, with what to do', async (path, text) => {
    await write({ [path]: text, 'a.py': '' })
    const message = await refusal()
    expect(message).toContain(`  ${path} `)
    expect(message).toContain('Name them in .crucibleignore and give their values as secrets.')
    expect(message).toContain(`A line such as !${path} there`)
  })

  it('are no obstacle once ignored, or asked for by name', async () => {
    await write({ '.env': 'A=1', 'test.pem': key, '.crucibleignore': '.env\n!test.pem\n' })
    expect(await packedFiles()).toEqual(['.crucibleignore', 'test.pem'])
  })

  it('are still refused when only their folder is asked for', async () => {
    await write({ 'x/.env': 'A=1', '.gitignore': 'x/\n', '.crucibleignore': '!x/\n' })
    expect(await refusal()).toContain('  x/.env ')
  })

  it.each([
    ['.env.example', 'A='],
    ['ca.pem', '-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n'],
    ['credentials.py', ''],
    ['check.py', `if "${key.split('\n')[0]}" in text: pass`],
    ['environment.yml', ''],
  ])('do not include %s', async (path, text) => {
    await write({ [path]: text })
    expect(await packedFiles()).toEqual([path])
  })
})

describe('limits', () => {
  it('name the largest parts when there is too much', async () => {
    await write({
      'data/a': 'x'.repeat(3000),
      'data/b': 'x'.repeat(2000),
      'big.bin': 'x'.repeat(4000),
      'a.py': 'x',
    })
    expect(await refusal({ limits: { totalBytes: 5000 } })).toBe(
      [
        `The folder ${root} is too large to send along: 9 kB in 4 files. At most 5 kB in 20000 files fit, 200 MB in one file. The largest:`,
        '  data/ 5 kB in 2 files',
        '  big.bin 4 kB in 1 file',
        '  a.py 1 B in 1 file',
        'Name what the program does not need in .crucibleignore, and give large data as inputs.',
      ].join('\n'),
    )
  })

  it('name the files that are too large each', async () => {
    await write({ 'data/a': 'x'.repeat(3000), b: 'x'.repeat(10) })
    const message = await refusal({ limits: { fileBytes: 2000 } })
    expect(message).toContain('  data/a 3 kB in 1 file\n')
    expect(message).not.toContain('  b ')
  })

  it('name the folders with the most files, and give up on a tree without end', async () => {
    await write(Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`many/${i}`, ''])))
    await write({ 'big.bin': 'x'.repeat(100) })
    expect(await refusal({ limits: { files: 10 } })).toMatch(
      /in 61 files\.[^]*:\n {2}many\/ 0 B in 60 files\n/,
    )
    expect(await refusal({ limits: { files: 3 } })).toContain('in more than 30 files')
  })

  it('allow what is just within them', async () => {
    await write({ a: 'x'.repeat(100), b: 'x'.repeat(100) })
    expect((await pack({ limits: { totalBytes: 200, files: 2, fileBytes: 100 } })).files).toBe(2)
  })

  it('shorten a long list', async () => {
    for (let i = 0; i < 15; i++) await write({ [`${i}/.env`]: '' })
    expect(await refusal()).toContain('  and 5 more\n')
  })
})

describe('storeBundle', () => {
  it('puts a bundle once, under its digest', async () => {
    const store = markedStore(join(scratch, 'store'))
    await write({ a: 'x' })
    const bundle = await pack()
    const { sha256, contentSha256, sizeBytes } = bundle
    const ref = { sha256, contentSha256, sizeBytes, files: 1 }
    expect(await storeBundle(store, 'job-a', bundle)).toEqual(ref)
    const first = await store.head(`jobs/job-a/bundle/${sha256}.tar.gz`)
    expect(first?.sizeBytes).toBe(sizeBytes)
    await bundle.remove()
    // There already: the file is no longer needed.
    expect(await storeBundle(store, 'job-a', bundle)).toEqual(ref)
    expect(await readdir(join(scratch, 'store', 'jobs', 'job-a', 'bundle'))).toEqual([`${sha256}.tar.gz`])
  })
})
