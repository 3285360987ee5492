/** Git's own answer to which files of a folder it ignores: it knows its index, all its rules and their order. */
import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode } from '../file-errors'
import { gitEnvironment } from './config'

/** The files of a folder in a repository. Paths are relative to the folder, with forward slashes. */
export interface GitFiles {
  isTracked(path: string): boolean
  /** Whether Git tracks a file, or would add it: no rule names it. A link counts as a file. */
  isListed(path: string): boolean
  /** Whether a folder has such a file, or is another repository. */
  hasListed(folder: string): boolean
  hasTracked(folder: string): boolean
  /** Those of some folders without listed files that a rule names. The others are empty, or have only files that rules name. */
  ignored(folders: readonly string[]): Promise<ReadonlySet<string>>
}

/** `none`: the folder is in no repository, or this machine has no Git. */
export type GitAnswer =
  { kind: 'files'; files: GitFiles } | { kind: 'none' } | { kind: 'failed'; reason: string }

/** The folder with the `.git` of a folder: itself or a parent; `undefined` outside repositories. */
export async function repositoryOf(directory: string): Promise<string | undefined> {
  for (let at = directory; ; at = dirname(at)) {
    const hasGit = await access(join(at, GIT_FOLDER)).then(
      () => true,
      () => false,
    )
    if (hasGit) return at
    if (dirname(at) === at) return undefined
  }
}

export const GIT_FOLDER = '.git'

/** Asks Git about a folder. A folder of a repository that a rule of its parents names as a whole counts as in none. */
export async function askGit(directory: string): Promise<GitAnswer> {
  if ((await repositoryOf(directory)) === undefined) return { kind: 'none' }
  try {
    const [tracked, others] = await Promise.all([
      listed(directory, ['--cached']),
      listed(directory, ['--others', '--exclude-standard']),
    ])
    if (tracked.length === 0 && others.length === 0 && (await isIgnored(directory))) return { kind: 'none' }
    return { kind: 'files', files: filesOf(directory, { tracked, others }) }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return { kind: 'none' }
    const { stderr = '' } = error as { stderr?: Buffer | string }
    const reason = String(stderr).trim().split('\n')[0] ?? ''
    return /not a git repository/i.test(reason)
      ? { kind: 'none' }
      : { kind: 'failed', reason: reason || String((error as Error).message) }
  }
}

function filesOf(
  directory: string,
  { tracked, others }: { tracked: readonly string[]; others: readonly string[] },
): GitFiles {
  const ofTracked = new Names(tracked)
  const ofOthers = new Names(others)
  return {
    isTracked: (path) => ofTracked.has(path),
    isListed: (path) => ofTracked.has(path) || ofOthers.has(path),
    hasListed: (folder) => ofTracked.hasBelow(folder) || ofOthers.hasBelow(folder),
    hasTracked: (folder) => ofTracked.hasBelow(folder),
    ignored: async (folders) => new Set(await checkIgnored(directory, folders)),
  }
}

/** Paths, and the folders above them. Another repository is listed as a folder: with a slash at its end, or as a submodule. */
class Names {
  private readonly paths = new Set<string>()
  private readonly folders = new Set<string>()

  constructor(paths: readonly string[]) {
    for (const path of paths) {
      this.paths.add(composed(path.replace(/\/$/, '')))
      if (path.endsWith('/')) this.folders.add(composed(path.slice(0, -1)))
      for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
        const folder = composed(path.slice(0, end))
        if (this.folders.has(folder)) break
        this.folders.add(folder)
      }
    }
  }

  has(path: string): boolean {
    return this.paths.has(composed(path))
  }

  hasBelow(folder: string): boolean {
    return this.folders.has(composed(folder)) || this.paths.has(composed(folder))
  }
}

/** On macOS, Git lists names in composed form, and folders in the form in which they were written. */
function composed(path: string): string {
  return process.platform === 'darwin' ? path.normalize('NFC') : path
}

async function listed(directory: string, options: readonly string[]): Promise<string[]> {
  return namesIn(await git(directory, ['ls-files', '-z', ...options]))
}

/** Whether a rule names the folder itself, or one above it. */
async function isIgnored(directory: string): Promise<boolean> {
  return (await checkIgnored(directory, ['.'])).length > 0
}

/** Returns those of some folders that a rule names. */
async function checkIgnored(directory: string, folders: readonly string[]): Promise<string[]> {
  if (folders.length === 0) return []
  const asked = folders.map((folder) => `./${folder}`).join('\0')
  try {
    const answer = await git(directory, ['check-ignore', '-z', '--stdin'], asked)
    return namesIn(answer).map((name) => name.replace(/^\.\//, ''))
  } catch (error) {
    // It exits with 1 when no rule names any of them.
    if ((error as { code?: unknown }).code === 1) return []
    throw error
  }
}

/**
 * Programs that a repository's configuration may start are turned off. The owner of a folder may be another user, such as that of a container
 * or a network share: somebody named it to be sent.
 */
const SAFELY = ['safe.directory=*', 'core.fsmonitor=false', 'core.hooksPath=/dev/null']
/** Names of more files than could ever be sent. */
const ANSWER_BYTES_MAX = 512 * 1024 * 1024

async function git(directory: string, command: readonly string[], input = ''): Promise<Buffer> {
  const settings = SAFELY.flatMap((setting) => ['-c', setting])
  const running = promisify(execFile)('git', [...settings, '-C', directory, ...command], {
    encoding: 'buffer',
    env: gitEnvironment(),
    maxBuffer: ANSWER_BYTES_MAX,
  })
  // A Git that ends before it has read its input reports why.
  running.child.stdin?.on('error', () => {}).end(input)
  return (await running).stdout
}

/** Names that are not UTF-8 are decoded in the same way as those that a folder lists. */
function namesIn(answer: Buffer): string[] {
  return answer
    .toString('utf8')
    .split('\0')
    .filter((name) => name !== '')
}
