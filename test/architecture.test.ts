import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import * as ts from 'typescript'

const ROOT = join(__dirname, '..')
/** The one import law: `eslint.config.mjs` reads the same file, and ARCHITECTURE.md shows it. */
const {
  rooms: LAW,
  parts: PARTS,
  runner: RUNNER_LAW,
  tools: TOOLS_LAW,
  test: TEST_LAW,
  notRooms: NOT_ROOMS,
} = JSON.parse(readFileSync(join(ROOT, 'tools', 'import-law.json'), 'utf8')) as {
  /** Our rooms, and packages (`node:` is all of Node), that each room may import when the program runs. */
  rooms: Record<string, Allowed>
  /** What a folder of a room may import in addition, and each folder of `backends/` of that room itself. */
  parts: { 'cli/dev': { alsoRooms: string[] }; 'backends/*': { onlyRooms: string[] } }
  /** Modules that all wings of the runner share, and the wings that each wing may import in addition. */
  runner: { base: string[]; wings: Record<string, string[]> }
  /** The rooms that generators read. */
  tools: Allowed
  /** Tests may import everything else; the folders that they share may import of the tests only what is named. */
  test: { never: string[]; parts: Record<string, string[]> }
  /** Folders without code that anything imports. */
  notRooms: string[]
}
interface Allowed {
  rooms: string[]
  packages: string[]
}
const FOLDERS = Object.keys(LAW)
const SMALL_CLOUD = 'packages/small-cloud'

interface Source {
  /** Relative to the root, with `/`. */
  path: string
  folder: string
  text: string
  /** What it imports when the program runs: our paths, or package names. Types vanish and do not count. */
  imports: string[]
}

const SOURCES = FOLDERS.flatMap((folder) => filesUnder(join(ROOT, folder)).map(read))
const SOURCES_OF_SMALL_CLOUD = filesUnder(join(ROOT, SMALL_CLOUD, 'src')).map(read)
const TESTS = filesUnder(join(ROOT, 'test')).map(read)

function filesUnder(directory: string, extension = /\.ts$/): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return filesUnder(path, extension)
    return extension.test(entry.name) ? [path] : []
  })
}

function read(path: string): Source {
  const text = readFileSync(path, 'utf8')
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022)
  const name = relative(ROOT, path)
  const imports: string[] = []
  const add = (specifier: ts.Expression | undefined): void => {
    if (specifier !== undefined && ts.isStringLiteral(specifier)) imports.push(resolved(path, specifier.text))
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && !isTypesOnly(node.importClause)) add(node.moduleSpecifier)
    if (ts.isExportDeclaration(node) && !node.isTypeOnly) add(node.moduleSpecifier)
    const isRequire =
      ts.isCallExpression(node) && ['require', 'import'].includes(node.expression.getText(file))
    if (isRequire) add(node.arguments[0])
    ts.forEachChild(node, visit)
  }
  visit(file)
  return { path: name, folder: roomOf(name) ?? name.split('/')[0]!, text, imports }
}

function roomOf(path: string): string | undefined {
  return FOLDERS.find((room) => path.startsWith(`${room}/`))
}

function isTypesOnly(clause: ts.ImportClause | undefined): boolean {
  if (clause === undefined) return false
  if (clause.isTypeOnly) return true
  const { namedBindings } = clause
  if (clause.name !== undefined || namedBindings === undefined || !ts.isNamedImports(namedBindings))
    return false
  return namedBindings.elements.every((element) => element.isTypeOnly)
}

function resolved(from: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  const target = resolve(dirname(from), specifier)
  const candidates = [`${target}.ts`, join(target, 'index.ts')]
  const file = candidates.find((candidate) => existsSync(candidate))
  return relative(ROOT, file ?? target)
}

const isOfSmallCloud = (target: string): boolean => /^#small-cloud(\/|$)/.test(target)

const isOurs = (target: string): boolean => roomOf(target) !== undefined

/** Whether a file is one of these rooms or files, or in one of these folders. */
const isIn = (target: string, places: readonly string[]): boolean =>
  places.some((place) => target.startsWith(`${place}/`) || target === `${place}.ts` || target === place)

const isPackageIn = (target: string, packages: readonly string[]): boolean =>
  packages.some((name) =>
    name.endsWith(':') ? target.startsWith(name) : target === name || target.startsWith(`${name}/`),
  )

const straysIn = (sources: Source[], isAllowed: (target: string) => boolean): string[] =>
  sources.flatMap(({ path, imports }) =>
    imports.filter((target) => !isAllowed(target)).map((target) => `${path} imports ${target}`),
  )

describe('the import law', () => {
  it.each(FOLDERS)('holds in %s', (folder) => {
    const own = SOURCES.filter((source) => source.folder === folder)
    expect(own).not.toEqual([])
    expect(straysIn(own, (target) => isAllowed(folder, target))).toEqual([])
  })

  function isAllowed(folder: string, target: string): boolean {
    if (isOfSmallCloud(target)) return folder === 'cli'
    return isIn(target, [folder, ...LAW[folder]!.rooms]) || isPackageIn(target, LAW[folder]!.packages)
  }

  it('holds in tools', () => {
    const tools = filesUnder(join(ROOT, 'tools'), /\.m?js$/).map(read)
    expect(tools.length).toBeGreaterThan(10)
    const rooms = ['tools', 'dist', ...TOOLS_LAW.rooms]
    const strays = straysIn(tools, (target) => isIn(target, rooms) || isPackageIn(target, TOOLS_LAW.packages))
    expect(strays).toEqual([])
  })

  it('holds in the tests', () => {
    expect(straysIn(TESTS, (target) => !isIn(target, TEST_LAW.never))).toEqual([])
  })

  it.each(Object.entries(TEST_LAW.parts))('holds in %s', (part, allowed) => {
    const own = TESTS.filter(({ path }) => path.startsWith(`${part}/`) && !path.endsWith('.test.ts'))
    expect(own).not.toEqual([])
    expect(straysIn(own, (target) => !isIn(target, ['test']) || isIn(target, [part, ...allowed]))).toEqual([])
  })

  it('has a line for every folder with code', () => {
    const folders = readdirSync(ROOT, { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && !/^\.|^(?:node_modules|dist|coverage|reports)$/.test(entry.name),
      )
      .map(({ name }) => name)
    const known = [...FOLDERS, 'packages', 'runner', 'tools', 'test', ...NOT_ROOMS]
    expect(folders.filter((folder) => !known.includes(folder))).toEqual([])
    expect(readdirSync(join(ROOT, 'packages'))).toEqual(['analyzer', 'small-cloud'])
  })

  it('is what ARCHITECTURE.md shows', () => {
    const text = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8')
    const shown = [...text.matchAll(/^\| `([\w/-]+)\/` \|.*\| ([^|]*) \|$/gm)].map(([, room, cell]) => [
      room,
      cell,
    ])
    const dev = `; \`cli/dev/\` ${PARTS['cli/dev'].alsoRooms.join(', ')}`
    const cellOf = (room: string): string =>
      `${LAW[room]!.rooms.join(', ') || 'nothing'}${room === 'cli' ? dev : ''}`
    const sharing = Object.entries(TEST_LAW.parts).map(
      ([part, others]) =>
        `; \`${part}/\` ${others.length > 0 ? `of the tests ${others.join(', ')}` : 'none'}`,
    )
    expect(shown).toEqual([
      ...FOLDERS.map((room) => [room, cellOf(room)]),
      ...['packages/small-cloud', 'runner', 'bindings', 'deploy'].map((room) => [room, 'nothing']),
      ['tools', TOOLS_LAW.rooms.join(', ')],
      ['test', `everything but ${TEST_LAW.never.join(', ')}${sharing.join('')}`],
    ])
  })

  it('lets no backend import another', () => {
    const strays = SOURCES.filter(({ path }) => /^backends\/[^/]+\//.test(path)).flatMap(
      ({ path, imports }) => {
        const own = path.split('/').slice(0, 2).join('/')
        return imports
          .filter(
            (target) => isIn(target, ['backends']) && !isIn(target, [own, ...PARTS['backends/*'].onlyRooms]),
          )
          .map((target) => `${path} imports ${target}`)
      },
    )
    expect(strays).toEqual([])
  })

  it('has no cycle', () => {
    const graph = new Map(SOURCES.map(({ path, imports }) => [path, imports.filter(isOurs)]))
    const done = new Set<string>()
    const cycles: string[] = []
    const visit = (path: string, trail: string[]): void => {
      if (trail.includes(path)) cycles.push([...trail.slice(trail.indexOf(path)), path].join(' > '))
      if (done.has(path) || trail.includes(path)) return
      for (const next of graph.get(path) ?? []) visit(next, [...trail, path])
      done.add(path)
    }
    for (const path of graph.keys()) visit(path, [])
    expect(cycles).toEqual([])
  })

  it('keeps core without an index: a barrel would drag Node into the workflows', () => {
    expect(existsSync(join(ROOT, 'core', 'index.ts'))).toBe(false)
  })
})

describe('ARCHITECTURE.md leads to', () => {
  const ROWS = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').split('\n')

  it.each([
    ['when a lease is renewed', 'activities/watch/machine.ts', /renewLease|putLease/],
    ['how cancel reaches the machine', 'workflows/job/commands.ts', /cancel/],
    ['what a log may grow to', 'runner/crucible_runner/logs/book.py', /^WAITING_BYTES_MAX/m],
    ['how many checkpoints are kept', 'core/job/checkpoint.ts', /^export const CHECKPOINTS_KEPT = /m],
    ['where the spot notice is polled', 'runner/crucible_runner/control/watch.py', /^_NOTICE_LOOK_SECONDS/m],
    ['when a launch answer is lost', 'workflows/job/launch.ts', /unconfirmed/],
    ['why another was not chosen', 'planner/plan/filter.ts', /Why an offer cannot run the job/],
    ['how a budget stops the machine', 'activities/watch/budget.ts', /when it must stop/],
    ['where secrets are decrypted', 'service/secrets.ts', /openSecrets/],
    ['what makes `list` fast', 'client/store-reads.ts', /slow or down/],
  ])('%s: %s', (question, file, answer) => {
    const row = ROWS.filter((line) => line.startsWith('| ') && line.split('|')[1]!.includes(question))
    expect(row).toHaveLength(1)
    expect(row[0]).toContain(`\`${file}\``)
    expect(readFileSync(join(ROOT, file), 'utf8')).toMatch(answer)
  })
})

describe('the import law of the runner', () => {
  const ROOT_OF_RUNNER = join(ROOT, 'runner', 'crucible_runner')
  const { base, wings } = RUNNER_LAW
  const modules = readdirSync(ROOT_OF_RUNNER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.py'))
    .map((entry) => relative(ROOT_OF_RUNNER, join(entry.parentPath, entry.name)))

  /** The wing, or the module outside the wings, that each import of a module leads to. */
  function importsOf(module: string): string[] {
    const text = readFileSync(join(ROOT_OF_RUNNER, module), 'utf8')
    const folders = module.split('/').slice(0, -1)
    return [...text.matchAll(/^\s*from (\.+)([\w.]*) import (\(?[^\n]*)/gm)].flatMap(
      ([, dots, name, names]) => {
        const from = folders.slice(0, folders.length - dots!.length + 1)
        const path = [...from, ...name!.split('.')].filter((part) => part !== '')
        // `from .. import clock, paths` names modules.
        return path.length > 0 ? [path[0]!] : names!.split(',').map((each) => each.trim().split(' ')[0]!)
      },
    )
  }

  it('has a line for every wing', () => {
    const found = modules.filter((module) => module.includes('/')).map((module) => module.split('/')[0]!)
    expect([...new Set(found)].sort()).toEqual(Object.keys(wings).sort())
  })

  it.each(Object.entries(wings))('holds in %s', (wing, allowed) => {
    const own = modules.filter((module) => module.startsWith(`${wing}/`))
    expect(own.length).toBeGreaterThan(0)
    const all = [wing, ...allowed, ...base, 'PROGRAM']
    const strays = own.flatMap((module) =>
      importsOf(module)
        .filter((target) => !all.includes(target))
        .map((target) => `${module} imports ${target}`),
    )
    expect(strays).toEqual([])
  })

  it('holds in what all wings share', () => {
    const strays = base.flatMap((name) =>
      importsOf(`${name}.py`)
        .filter((target) => ![...base, 'notices'].includes(target))
        .map((target) => `${name}.py imports ${target}`),
    )
    expect(strays).toEqual([])
  })
})

describe('the small cloud', () => {
  const { exports, dependencies } = JSON.parse(
    readFileSync(join(ROOT, SMALL_CLOUD, 'package.json'), 'utf8'),
  ) as { exports: Record<string, string>; dependencies: Record<string, string> }
  it('imports nothing of the product, and no package that it does not name', () => {
    const names = ['node:', ...Object.keys(dependencies)]
    const isAllowed = (target: string): boolean =>
      target.startsWith(`${SMALL_CLOUD}/src/`) || names.some((name) => target.startsWith(name))
    expect(straysIn(SOURCES_OF_SMALL_CLOUD, isAllowed)).toEqual([])
  })

  it('has tests that import nothing of the product', () => {
    const tests = filesUnder(join(ROOT, SMALL_CLOUD, 'test')).map(read)
    const isAllowed = (target: string): boolean =>
      target.startsWith(`${SMALL_CLOUD}/`) || !(isOurs(target) || /^(test\/|\.|#)/.test(target))
    expect(straysIn(tests, isAllowed)).toEqual([])
  })

  it('is imported in cli/dev and by tests only, types included', () => {
    const users = SOURCES.filter(({ text }) => /['"]#small-cloud|packages\/small-cloud\/src/.test(text))
    expect(users.map(({ path }) => path).filter((path) => !path.startsWith('cli/dev/'))).toEqual([])
    expect(users).not.toEqual([])
  })

  it('exports every part that others import', () => {
    const others = [...SOURCES, ...TESTS]
    const imported = others.flatMap(({ text }) =>
      [...text.matchAll(/from '#small-cloud([/\w-]*)'/g)].map(([, part]) => `.${part!}`),
    )
    expect(new Set(imported)).toEqual(new Set(Object.keys(exports).filter((name) => !name.endsWith('.json'))))
  })
})

describe('the house', () => {
  it('speaks of providers only where they are wired', () => {
    const words = /\b(?:aws|ec2|s3|ssm|modal|paperspace|lambda labs|colab|InsufficientInstanceCapacity)\b/i
    const strays = SOURCES.filter(({ folder }) =>
      ['core', 'planner', 'workflows', 'activities'].includes(folder),
    ).flatMap(({ path, text }) =>
      withoutComments(text)
        .split('\n')
        .filter((line) => words.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    )
    expect(strays).toEqual([])
  })

  it('never asks which backend it is talking to', () => {
    const strays = SOURCES.filter(({ folder }) => folder !== 'backends' && folder !== 'cli').flatMap(
      ({ path, text }) =>
        [...text.matchAll(/backend(?:\.name)? [!=]==? '[^']+'/g)].map(([match]) => `${path}: ${match}`),
    )
    expect(strays).toEqual([])
  })

  it('reads the environment in config files only', () => {
    const strays = SOURCES.filter(
      ({ path, text }) => /process\.env\b/.test(withoutComments(text)) && !path.endsWith('config.ts'),
    )
    expect(strays.map(({ path }) => path)).toEqual([])
  })

  it('counts, rolls dice and looks at the clock of workflows only through Temporal', () => {
    const strays = SOURCES.filter(({ folder }) => folder === 'planner' || folder === 'core').filter(
      ({ text }) => /Date\.now\(|Math\.random\(|new Date\(\)/.test(withoutComments(text)),
    )
    expect(strays.map(({ path }) => path)).toEqual([])
  })

  it('uses one copy of the newer protobuf library: JSON histories are not read otherwise', () => {
    const copies = ['common', 'proto', 'worker'].map((name) =>
      require.resolve('protobufjs', { paths: [dirname(require.resolve(`@temporalio/${name}`))] }),
    )
    expect(new Set(copies).size).toBe(1)
  })
})

describe('dependencies', () => {
  it('stand in one table, each with its reason', () => {
    const used = ['package.json', join('packages', 'small-cloud', 'package.json')].flatMap((path) => {
      const { dependencies = {}, devDependencies = {} } = JSON.parse(
        readFileSync(join(ROOT, path), 'utf8'),
      ) as Partial<Record<'dependencies' | 'devDependencies', Record<string, string>>>
      return [...Object.keys(dependencies), ...Object.keys(devDependencies)]
    })
    const table = readFileSync(join(ROOT, 'docs', 'decisions', '0002-dependencies.md'), 'utf8')
    const listed = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!)
    expect(listed.sort()).toEqual([...new Set(used)].sort())
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}
