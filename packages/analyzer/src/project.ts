/** The files of a project: how an import, a configuration file and the script of a command are found. */
import { parse as parseToml } from 'smol-toml'
import { parseDocument } from 'yaml'
import { notebookCode } from './notebook'
import type { PythonParser, SourceFile } from './syntax'
import { constant, dict, list, unknown, type Value } from './values'

/** The texts of a project. Paths are relative to its folder, with `/`. */
export interface ProjectFiles {
  /** Returns the text of a file; `undefined` if the file does not exist. */
  read(path: string): string | undefined
  /** Why a file that exists cannot be read; `undefined` if it can, or if it does not exist. */
  problemOf?(path: string): string | undefined
  /** Paths of all readable files, for a folder whose script must be found. */
  list(): readonly string[]
}

/** Something that keeps part of the project from being read. */
export interface Obstacle {
  file: string
  line: number
  message: string
}

/** A larger project is read up to these limits. */
const FILES_MAX = 200
const CHARACTERS_MAX = 4_000_000

export class Project {
  readonly obstacles: Obstacle[] = []
  readonly #sources = new Map<string, SourceFile | undefined>()
  /** Usual places of modules, in addition to the script's own folder, and those that the program adds. */
  readonly #folders = new Set<string>()
  #characters = 0

  constructor(
    private readonly files: ProjectFiles,
    private readonly parser: PythonParser,
    /** The folder in which the program runs. */
    readonly folder = '',
  ) {}

  /** Adds a folder, as the program names it, to the places of its modules. */
  addFolder(path: string): void {
    this.#folders.add(joined(this.folder, path))
  }

  #foldersFrom(file: string): string[] {
    return [
      ...new Set([folderOf(file), this.folder, joined(this.folder, 'src'), '', 'src', ...this.#folders]),
    ]
  }

  /** Python files that were read, in order. */
  get sources(): SourceFile[] {
    return [...this.#sources.values()].filter((source) => source !== undefined)
  }

  source(path: string): SourceFile | undefined {
    if (this.#sources.has(path)) return this.#sources.get(path)
    const source = this.#read(path)
    this.#sources.set(path, source)
    return source
  }

  #read(path: string): SourceFile | undefined {
    if (this.#sources.size >= FILES_MAX || this.#characters > CHARACTERS_MAX) {
      if (this.files.read(path) !== undefined)
        this.obstacle(path, 1, 'was not read: the project is larger than this analysis reads')
      return undefined
    }
    const text = this.files.read(path)
    if (text === undefined) {
      const problem = this.files.problemOf?.(path)
      if (problem !== undefined) this.obstacle(path, 1, problem)
      return undefined
    }
    if (!path.endsWith('.ipynb')) return this.#parse(path, text)
    const read = notebookCode(text)
    if ('code' in read) return this.#parse(path, read.code)
    this.obstacle(path, 1, read.problem)
    return undefined
  }

  #parse(path: string, text: string): SourceFile | undefined {
    this.#characters += text.length
    const source = this.parser.parse(path, text)
    if (source === undefined)
      this.obstacle(path, 1, 'was not read: it has more syntax errors than can be passed over')
    else if (source.python2Line !== undefined)
      this.obstacle(path, source.python2Line, 'is written for Python 2, which no supported framework runs on')
    else if (source.brokenLines.length > 0)
      this.obstacle(
        path,
        source.brokenLines[0]!,
        'has a syntax error: everything that depends on this line is unknown',
      )
    return source
  }

  obstacle(file: string, line: number, message: string): void {
    if (!this.obstacles.some((each) => each.file === file && each.line === line && each.message === message))
      this.obstacles.push({ file, line, message })
  }

  /** The file of a module, looked up next to the script and then in the project's folder. */
  moduleFile(name: string, from: string): string | undefined {
    const path = name.split('.').join('/')
    for (const folder of this.#foldersFrom(from)) {
      for (const candidate of [`${path}.py`, `${path}/__init__.py`]) {
        const file = joined(folder, candidate)
        if (this.files.read(file) !== undefined) return file
      }
    }
    return undefined
  }

  /** Whether the project has a module of this name in one file, unlike a library, which has a folder. */
  isPlainModule(name: string, from: string): boolean {
    return this.moduleFile(name, from)?.endsWith(`${name}.py`) === true
  }

  /** Whether modules of this name are below a folder without `__init__.py`. */
  hasFolder(name: string, from: string): boolean {
    const path = name.split('.').join('/')
    return this.#foldersFrom(from).some((folder) => {
      const prefix = `${joined(folder, path)}/`
      return this.files.list().some((file) => file.startsWith(prefix) && file.endsWith('.py'))
    })
  }

  /** A configuration file as a value; `undefined` if it cannot be read. */
  data(path: string, from: string): Value | undefined {
    for (const file of new Set([joined(this.folder, path), joined(folderOf(from), path)])) {
      const text = this.files.read(file)
      if (text === undefined) continue
      const ending = file.slice(file.lastIndexOf('.') + 1)
      const read = READERS[ending]
      if (read === undefined) return undefined
      try {
        return valueOf(read(text))
      } catch {
        const format = { toml: 'TOML', json: 'JSON' }[ending] ?? 'YAML'
        this.obstacle(file, 1, `cannot be read as ${format}`)
      }
    }
    return undefined
  }
}

function readYaml(text: string): unknown {
  const document = parseDocument(text, { logLevel: 'error' })
  const [error] = document.errors
  if (error !== undefined) throw error
  return document.toJS()
}

/** Formats of configuration files; YAML contains JSON. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  yaml: readYaml,
  yml: readYaml,
  json: readYaml,
  toml: parseToml,
}

/** Data of a configuration file as a value. */
export function valueOf(data: unknown): Value {
  if (data === undefined) return unknown()
  if (data === null || typeof data === 'boolean') return constant(data)
  if (typeof data === 'number') return constant(data)
  if (typeof data === 'string') {
    // YAML 1.2 reads 1e-4 as a text, Python programs mean a number.
    const number = Number(data)
    return constant(
      data.trim() !== '' && data.toLowerCase().includes('e') && !Number.isNaN(number) ? number : data,
    )
  }
  if (Array.isArray(data)) return list(data.map(valueOf))
  if (typeof data === 'object')
    return dict(new Map(Object.entries(data).map(([key, value]) => [key, valueOf(value)])))
  return unknown()
}

export function folderOf(path: string): string {
  const at = path.lastIndexOf('/')
  return at === -1 ? '' : path.slice(0, at)
}

export function joined(folder: string, path: string): string {
  return normal(folder === '' ? path : `${folder}/${path}`)
}

/** A path of the project as a program in a folder of it names it. */
export function pathFrom(folder: string, path: string): string {
  const [from, to] = [folder, path].map((each) => each.split('/').filter((name) => name !== ''))
  const common = from!.findIndex((name, at) => name !== to![at])
  const shared = common === -1 ? from!.length : common
  return [...from!.slice(shared).map(() => '..'), ...to!.slice(shared)].join('/') || '.'
}

/** Removes `.` and `..` from a path; a `..` above the project's folder stays, and names no file of it. */
function normal(path: string): string {
  const result: string[] = []
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..' && result.length > 0 && result.at(-1) !== '..') result.pop()
    else result.push(part)
  }
  return result.join('/')
}
