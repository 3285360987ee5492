import { afterEach, beforeEach, describe, expect, it } from '@jest/globals'
import { execFileSync } from 'node:child_process'
import { appendFile, chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { readTree } from '../../storage/bundle-tree'

let scratch: string
let top: string
/** The variables that tests change, as they were. */
const BEFORE = ['PATH', 'GIT_CONFIG_GLOBAL', 'GIT_CONFIG_NOSYSTEM'].map(
  (name) => [name, process.env[name]] as const,
)

beforeEach(async () => {
  scratch = await realpath(await mkdtemp(join(tmpdir(), 'crucible-git-')))
  top = join(scratch, 'repository')
  process.env.GIT_CONFIG_GLOBAL = join(scratch, 'gitconfig')
  process.env.GIT_CONFIG_NOSYSTEM = '1'
  await mkdir(top)
  await writeFile(
    join(scratch, 'gitconfig'),
    '[user]\nname = x\nemail = x@example.com\n[init]\ndefaultBranch = main\n',
  )
  git('init', '-q')
})
afterEach(async () => {
  for (const [name, value] of BEFORE) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  await rm(scratch, { recursive: true, force: true })
})

function git(...command: string[]): void {
  execFileSync('git', ['-C', top, '-c', 'protocol.file.allow=always', ...command], { stdio: 'pipe' })
}

async function write(files: Record<string, string>, under = top): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(under, path)), { recursive: true })
    await writeFile(join(under, path), text)
  }
}

/** What is sent of a folder of the repository; folders end in a slash. */
async function sent(folder = '', leaveOut: string[] = []): Promise<string[]> {
  const { entries } = await readTree(join(top, folder), leaveOut, 1_000)
  return entries.map(({ kind, path }) => (kind === 'folder' ? `${path}/` : path))
}

/** Hides Git, as on a machine without it. */
async function withoutGit(): Promise<void> {
  const empty = join(scratch, 'bin')
  await mkdir(empty)
  process.env.PATH = empty
}

const BELOW = {
  '.gitignore': 'data/\n*.ckpt\nconfig.local.json\n',
  'exp1/train.py': '',
  'exp1/data/big.bin': '',
  'exp1/model.ckpt': '',
  'exp1/config.local.json': '',
  'exp1/private/notes.txt': '',
  'exp1/deep/.gitignore': '!kept.ckpt\n',
  'exp1/deep/kept.ckpt': '',
}

describe.each([
  ['with Git', async () => {}],
  ['without Git', withoutGit],
])('in a repository, %s, a folder below its root', (_how, prepare) => {
  it('follows the rules of its parents and of info/exclude', async () => {
    await write(BELOW)
    await appendFile(join(top, '.git/info/exclude'), 'exp1/private/\n')
    await prepare()
    expect(await sent('exp1')).toEqual(['deep/', 'deep/.gitignore', 'deep/kept.ckpt', 'train.py'])
  })

  it('follows the .crucibleignore of its parents before them', async () => {
    await write({ ...BELOW, '.crucibleignore': '!/exp1/model.ckpt\ntrain.py\n' })
    await prepare()
    const all = await sent('exp1')
    expect(all).toContain('model.ckpt')
    expect(all).not.toContain('train.py')
  })

  it('is sent although a rule names the whole folder', async () => {
    await write({
      '.gitignore': 'runs/\n',
      'runs/one/train.py': '',
      'runs/one/.gitignore': '*.log\n',
      'runs/one/a.log': '',
    })
    await prepare()
    expect(await sent('runs/one')).toEqual(['.gitignore', 'train.py'])
  })
})

describe('in a repository', () => {
  it('a tracked file is sent although a rule names it, unless .crucibleignore does', async () => {
    await write({
      '.gitignore': '*.json\ncache/\n',
      'config.json': '',
      'other.json': '',
      'cache/tracked': '',
      'cache/not': '',
      'node_modules/ours.js': '',
      'node_modules/theirs.js': '',
      'secret.json': '',
      '.crucibleignore': 'secret.json\n',
    })
    git('add', '-f', 'config.json', 'cache/tracked', 'node_modules/ours.js', 'secret.json')
    expect(await sent()).toEqual([
      '.crucibleignore',
      '.gitignore',
      'cache/',
      'cache/tracked',
      'config.json',
      'node_modules/',
      'node_modules/ours.js',
    ])
  })

  it("the user's own excludes hold", async () => {
    await appendFile(join(scratch, 'gitconfig'), `[core]\nexcludesFile = ${join(scratch, 'excludes')}\n`)
    await writeFile(join(scratch, 'excludes'), '*.swp\n')
    await write({ 'a.py': '', 'a.py.swp': '' })
    expect(await sent()).toEqual(['a.py'])
  })

  it('empty folders are sent, also those with nothing but ignored files, and ignored ones are not', async () => {
    await write({ '.gitignore': '*.ckpt\n/data/\n', 'out/a.ckpt': '', 'out/deep/b.ckpt': '', 'data/x': '' })
    await mkdir(join(top, 'empty', 'inner'), { recursive: true })
    expect(await sent()).toEqual(['.gitignore', 'empty/', 'empty/inner/', 'out/', 'out/deep/'])
  })

  it('.crucibleignore asks for an ignored folder, in which the other rules still hold', async () => {
    await write({
      '.gitignore': 'data/\n*.bin\n',
      '.crucibleignore': '!data/\n',
      'data/deep/x.txt': '',
      'data/y.bin': '',
      'data/tracked.bin': '',
    })
    git('add', '-f', 'data/tracked.bin')
    expect(await sent()).toEqual([
      '.crucibleignore',
      '.gitignore',
      'data/',
      'data/deep/',
      'data/deep/x.txt',
      'data/tracked.bin',
    ])
  })

  it('deleted tracked files and those of a sparse checkout are not missed', async () => {
    await write({ 'a/x': '', 'b/y': '', 'c/z': '' })
    git('add', '.')
    git('commit', '-qm', 'x')
    git('sparse-checkout', 'set', 'a', 'b')
    await rm(join(top, 'b/y'))
    expect(await sent()).toEqual(['a/', 'a/x', 'b/'])
  })

  it('submodules and other repositories are sent by their own rules, if none of the outer ones names them', async () => {
    const library = join(scratch, 'library')
    await write({ '.gitignore': '*.o\n', 'lib.py': '' }, library)
    for (const command of [
      ['init', '-q'],
      ['add', '.'],
      ['commit', '-qm', 'x'],
    ])
      execFileSync('git', ['-C', library, ...command])
    await write({
      '.gitignore': '*.py\nhidden/\n!/train.py\n',
      'train.py': '',
      'hidden/x': '',
      'vendor/v.txt': '',
    })
    git('submodule', '--quiet', 'add', library, 'sub')
    await write({ 'sub/a.o': '', 'sub/new.py': '' })
    for (const folder of ['hidden', 'vendor']) execFileSync('git', ['init', '-q', join(top, folder)])
    await write({ 'vendor/w.py': '' })
    expect(await sent()).toEqual([
      '.gitignore',
      '.gitmodules',
      'sub/',
      'sub/.gitignore',
      'sub/lib.py',
      'sub/new.py',
      'train.py',
      'vendor/',
      'vendor/v.txt',
      'vendor/w.py',
    ])
  })

  it('a worktree of its own has the rules of its repository', async () => {
    await write({ '.gitignore': '*.log\n', 'a.py': '', 'made.log': '' })
    git('add', '-f', '.')
    git('commit', '-qm', 'x')
    git('worktree', 'add', '-q', join(top, '..', 'tree'))
    await write({ 'b.log': '', 'b.py': '' }, join(scratch, 'tree'))
    expect(await sent('../tree')).toEqual(['.gitignore', 'a.py', 'b.py', 'made.log'])
  })

  it('a link that a rule with a slash names is not sent, unless Git tracks it', async () => {
    await write({ '.gitignore': 'data/\nkept/\n', 'a.py': '' })
    await symlink('/nowhere', join(top, 'data'))
    await symlink('a.py', join(top, 'kept'))
    git('add', '-f', 'kept')
    expect(await sent()).toEqual(['.gitignore', 'a.py', 'kept'])
  })

  it('no program that its configuration names is started, and variables of hooks lead nowhere', async () => {
    await write({
      'a.py': '',
      'started.sh': `#!/bin/sh\ntouch ${join(scratch, 'started')}\n`,
      'x.log': '',
      '.gitignore': '*.log\n',
    })
    await chmod(join(top, 'started.sh'), 0o755)
    git('add', '.')
    git('config', 'core.fsmonitor', join(top, 'started.sh'))
    const { entries } = await withVariables({ GIT_DIR: '/nowhere', GIT_INDEX_FILE: '/nowhere/index' }, () =>
      readTree(top, [], 100),
    )
    expect(entries.map(({ path }) => path)).toEqual(['.gitignore', 'a.py', 'started.sh'])
    await expect(realpath(join(scratch, 'started'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('the rules are read without Git if it fails, with a warning', async () => {
    await write({ '.gitignore': '*.log\n', 'a.py': '', 'a.log': '' })
    await writeFile(join(top, '.git/index'), 'damaged')
    const { entries, warnings } = await readTree(top, [], 100)
    expect(entries.map(({ path }) => path)).toEqual(['.gitignore', 'a.py'])
    expect(warnings).toEqual([expect.stringMatching(/^Git cannot list the files of .*index/)])
  })
})

async function withVariables<T>(more: Record<string, string>, does: () => Promise<T>): Promise<T> {
  Object.assign(process.env, more)
  try {
    return await does()
  } finally {
    for (const name of Object.keys(more)) delete process.env[name]
  }
}
