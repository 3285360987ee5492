import { isUtf8 } from 'node:buffer'
import type { Dirent } from 'node:fs'
import { lstat, readdir, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import {
  isAskedFor,
  isEnvironment,
  isLeftOutByDefault,
  isNeverPacked,
  ownRulingOn,
  ruleOn,
  rulesAbove,
  rulesOf,
  type Rules,
} from './bundle-rules'
import { askGit, GIT_FOLDER, type GitFiles } from './git/files'
import { compareKeys } from './keys'
import type { TarEntry } from './tarball'

export type FileEntry = Extract<TarEntry, { kind: 'file' }> & {
  /** A `!` line of a `.crucibleignore` names it. */
  isAskedFor: boolean
}

/** The content of a folder to pack. */
export interface Tree {
  /** Entries in path order. */
  entries: (FileEntry | Exclude<TarEntry, { kind: 'file' }>)[]
  /** Links that lead out of the folder, with their targets. */
  outsideLinks: { path: string; target: string }[]
  /** Sentences about files that are left out although no rule names them, and about other differences from the folder. */
  warnings: string[]
  /** False when the walk was given up because of too many files. */
  isWhole: boolean
}

interface Walk {
  tree: Tree
  root: string
  leaveOut: ReadonlySet<string>
  filesMax: number
  files: number
  /** The packed names of each file with several names, by its device and number. */
  linked: Map<string, FileEntry[]>
  /** Paths that cannot be sent because their names, or the targets of links, are not UTF-8. */
  unsendable: string[]
}

/** A folder of the walk. */
interface Folder {
  /** With a slash at its end; empty for the root. */
  path: string
  rules: Rules
  /** The repository that it is in; missing outside one, and where Git cannot be asked. */
  git?: { files: GitFiles; root: string } | undefined
  /** A `!` line asked for it although Git ignores it: only ignore files inside it apply. */
  isAskedFor: boolean
}

/**
 * Lists the content of a folder to pack. Sockets, pipes and devices are left out.
 *
 * In a repository, Git says which files its rules name; a tracked file is packed even if one does. Elsewhere, and without Git, this program
 * reads the ignore files itself.
 *
 * @param leaveOut paths that are left out regardless of the ignore files
 * @param filesMax number of files after which to give up
 */
export async function readTree(
  directory: string,
  leaveOut: readonly string[],
  filesMax: number,
): Promise<Tree> {
  const walk: Walk = {
    tree: { entries: [], outsideLinks: [], warnings: [], isWhole: true },
    root: await realpath(directory),
    leaveOut: new Set(leaveOut),
    filesMax,
    files: 0,
    linked: new Map(),
    unsendable: [],
  }
  const git = await gitOf(walk, '')
  await visitFolder(walk, { path: '', rules: await rulesAbove(walk.root), git, isAskedFor: false })
  walk.tree.entries.sort((a, b) => compareKeys(a.path, b.path))
  for (const names of walk.linked.values()) {
    const [first, ...others] = names.sort((a, b) => compareKeys(a.path, b.path))
    for (const other of others) other.sameAs = first!.path
  }
  if (walk.unsendable.length > 0) walk.tree.warnings.push(unsendableInWords(walk.unsendable))
  return walk.tree
}

const NAMED_MAX = 5

function unsendableInWords(paths: readonly string[]): string {
  const more = paths.length > NAMED_MAX ? ` and ${paths.length - NAMED_MAX} more` : ''
  return `Not sent, because their names are not UTF-8: ${paths.slice(0, NAMED_MAX).join(', ')}${more}. Rename what the program needs.`
}

async function gitOf(walk: Walk, path: string): Promise<Folder['git']> {
  const answer = await askGit(join(walk.root, path))
  if (answer.kind === 'files') return { files: answer.files, root: path }
  if (answer.kind === 'failed') {
    walk.tree.warnings.push(
      `Git cannot list the files of ${join(walk.root, path)} (${answer.reason}). The ignore files are read without it, so a tracked file that a rule names is not sent.`,
    )
  }
  return undefined
}

async function visitFolder(walk: Walk, folder: Folder): Promise<void> {
  const { path } = folder
  const children = await childrenOf(walk, folder)
  const names = children.map(({ name }) => name)
  if (path !== '' && isEnvironment(names) && !isAskedFor(path, folder.rules)) return
  if (path !== '') {
    const { mtimeMs } = await lstat(join(walk.root, path))
    walk.tree.entries.push({ kind: 'folder', path: path.slice(0, -1), modifiedAtMs: Math.round(mtimeMs) })
  }
  const rules = await rulesOf(walk.root, path, folder.rules)
  // A repository in a repository has its own rules.
  const git = path !== '' && names.includes(GIT_FOLDER) ? await gitOf(walk, path) : folder.git
  const here: Folder = { ...folder, rules, git }
  const folders = children.filter((child) => child.isDirectory() && isWanted(walk, path, child))
  const inside = await foldersInside(
    here,
    folders.map(({ name }) => `${path}${name}/`),
  )
  for (const child of children) {
    if (!isWanted(walk, path, child)) continue
    const at = `${path}${child.name}`
    if (child.isDirectory()) {
      const found = inside.get(`${at}/`)
      if (found !== undefined) await visitFolder(walk, found)
    } else await visitFile(walk, here, { path: at, child })
    if (!walk.tree.isWhole) return
  }
}

function isWanted({ leaveOut }: Walk, folder: string, { name }: Dirent): boolean {
  return !leaveOut.has(`${folder}${name}`)
}

/** The entries of a folder. Those whose names are not UTF-8 are noted if they would be packed. */
async function childrenOf(walk: Walk, folder: Folder): Promise<Dirent[]> {
  const place = join(walk.root, folder.path)
  const children = await readdir(place, { withFileTypes: true })
  // A name that is not UTF-8 is decoded with a replacement character.
  if (!children.some(({ name }) => name.includes('\uFFFD'))) return children
  const bytes = await readdir(place, { encoding: 'buffer' })
  const proper = new Set(bytes.filter((name) => isUtf8(name)).map((name) => name.toString('utf8')))
  const others = bytes.filter((name) => !isUtf8(name))
  for (const name of others) {
    const path = `${folder.path}${name.toString('utf8')}`
    const isPacked = folder.git?.files.isListed(inGit(folder, path)) ?? true
    if (isPacked && ruleOn(path, folder.rules).isPacked) walk.unsendable.push(folder.path + escaped(name))
  }
  return children.filter(({ name }) => proper.has(name))
}

/** `caf\xe9.txt` */
function escaped(name: Buffer): string {
  return [...name]
    .map((byte) => (byte < 0x80 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`))
    .join('')
}

function inGit({ git }: Folder, path: string): string {
  return path.slice(git?.root.length ?? 0)
}

/** Returns the folders to walk into, of those inside a folder. Their paths end in a slash. */
async function foldersInside(here: Folder, paths: readonly string[]): Promise<Map<string, Folder>> {
  const { rules, git } = here
  const allowed = paths.filter((path) => !isNeverPacked(path))
  const found = new Map<string, Folder>()
  const take = (path: string, more: Partial<Folder> = {}): void =>
    void found.set(path, { ...here, path, ...more })
  if (git === undefined) {
    for (const path of allowed) {
      const { isPacked, inside } = ruleOn(path, rules)
      if (isPacked) take(path, { rules: inside })
    }
    return found
  }
  const unlisted: string[] = []
  for (const path of allowed) {
    const own = ownRulingOn(path, rules)
    const inRepository = inGit(here, path).slice(0, -1)
    const { isPacked: isPackedByFiles, inside } = ruleOn(path, rules)
    if (own === 'packed') take(path, { rules: inside, isAskedFor: true })
    else if (own === undefined && git.files.hasTracked(inRepository)) take(path)
    else if (own === 'left out' || isLeftOutByDefault(path, rules)) continue
    else if (here.isAskedFor) {
      if (isPackedByFiles) take(path, { rules: inside })
    } else if (git.files.hasListed(inRepository)) take(path)
    else unlisted.push(path)
  }
  const ignored = await git.files.ignored(unlisted.map((path) => inGit(here, path).slice(0, -1)))
  for (const path of unlisted) if (!ignored.has(inGit(here, path).slice(0, -1))) take(path)
  return found
}

/** Whether a file or link of a folder is packed. */
function isPacked({ rules, git, isAskedFor: isAsked }: Folder, path: string): boolean {
  if (git === undefined) return ruleOn(path, rules).isPacked
  if (isNeverPacked(path)) return false
  const ruling = ownRulingOn(path, rules)
  if (ruling !== undefined) return ruling === 'packed'
  const inRepository = path.slice(git.root.length)
  if (git.files.isTracked(inRepository)) return true
  if (isAsked) return ruleOn(path, rules).isPacked
  return git.files.isListed(inRepository) && !isLeftOutByDefault(path, rules)
}

async function visitFile(
  walk: Walk,
  here: Folder,
  { path, child }: { path: string; child: Dirent },
): Promise<void> {
  if (!isPacked(here, path)) return
  if (child.isSymbolicLink()) {
    // Git treats a link as a file even when it leads to a folder; people who write `data/` mean both.
    const isTracked = here.git?.files.isTracked(inGit(here, path)) ?? false
    if (isTracked || ruleOn(`${path}/`, here.rules).isPacked) await addLink(walk, path)
  } else if (child.isFile()) {
    await addFile(walk, path, isAskedFor(path, here.rules))
    walk.tree.isWhole = ++walk.files <= walk.filesMax
  }
}

async function addFile(walk: Walk, path: string, isAsked: boolean): Promise<void> {
  const { size, mode, mtimeMs, nlink } = await lstat(join(walk.root, path))
  const entry: FileEntry = {
    kind: 'file',
    path,
    sizeBytes: size,
    mode: mode & PERMISSIONS,
    modifiedAtMs: Math.round(mtimeMs),
    isAskedFor: isAsked,
  }
  walk.tree.entries.push(entry)
  if (nlink === 1) return
  // Numbers of files may be too large for a double.
  const { dev, ino } = await lstat(join(walk.root, path), { bigint: true })
  const key = `${dev}:${ino}`
  walk.linked.set(key, [...(walk.linked.get(key) ?? []), entry])
}

const PERMISSIONS = 0o777

/** Links are stored as relative ones, so that they lead to the same file wherever the tree is unpacked. */
async function addLink({ tree, root, unsendable }: Walk, path: string): Promise<void> {
  const target = await readlink(join(root, path), { encoding: 'buffer' })
  if (!isUtf8(target)) {
    unsendable.push(`${path} -> ${escaped(target)}`)
    return
  }
  const written = target.toString('utf8')
  const place = dirname(path)
  const led = relative(root, await withoutLinks(resolve(root, place, written)))
  const isOutside = led === '..' || led.startsWith(`..${sep}`) || isAbsolute(led)
  if (isOutside) tree.outsideLinks.push({ path, target: written })
  else tree.entries.push({ kind: 'link', path, target: relative(place, led) || '.' })
}

/** Resolves the links in a path's folder, as far as it exists; the last name is kept even when it is a link. */
async function withoutLinks(path: string): Promise<string> {
  return realpath(dirname(path)).then(
    (folder) => join(folder, path.slice(dirname(path).length)),
    () => path,
  )
}
