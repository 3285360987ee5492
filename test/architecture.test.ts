import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import * as ts from 'typescript'

const ROOT = join(__dirname, '..')
const FOLDERS = [
  'core',
  'intake',
  'planner',
  'storage',
  'workflows',
  'activities',
  'backends',
  'workers',
  'rehearse',
  'client',
  'cli',
]
const SMALL_CLOUD = 'packages/small-cloud'

/** The law in words: what a folder may import of ours, beside itself, when the program runs. */
const LAW: Readonly<Record<string, readonly string[]>> = {
  core: [],
  intake: ['core'],
  planner: ['core'],
  storage: ['core'],
  workflows: ['core'],
  activities: ['core', 'intake', 'planner', 'storage', 'backends/backend', 'backends/errors'],
  backends: ['core'],
  workers: ['core', 'intake', 'planner', 'storage', 'workflows', 'activities', 'backends'],
  // It plays the control plane and the provider for one host: a composition as the workers are, of their parts.
  rehearse: ['core', 'intake', 'planner', 'storage', 'workers', 'backends/backend'],
  client: ['core', 'intake', 'storage'],
  cli: [
    'core',
    'intake',
    'storage',
    'client',
    'workers',
    'backends/registry',
    'backends/backend',
    'rehearse',
  ],
}

/** Packages that a folder may import when the program runs; `node:` stands for all of Node. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  core: [],
  intake: ['yaml', 'zod'],
  planner: [],
  storage: [
    'node:',
    '@aws-sdk/client-s3',
    '@aws-sdk/client-sts',
    '@aws-sdk/lib-storage',
    '@aws-sdk/s3-request-presigner',
    'ignore',
    'tar',
  ],
  workflows: ['@temporalio/workflow', '@temporalio/common'],
  activities: ['node:', '@temporalio/activity', '@temporalio/client'],
  backends: ['node:', '@aws-sdk'],
  workers: ['node:', '@temporalio/worker', '@temporalio/client', '@temporalio/envconfig', 'pino'],
  rehearse: ['node:'],
  client: ['node:', '@temporalio/client', '@temporalio/common', '@temporalio/envconfig'],
  cli: [
    'node:',
    '@temporalio/client',
    '@temporalio/envconfig',
    'commander',
    'cli-table3',
    'picocolors',
    'tar',
  ],
}

interface Source {
  /** Relative to the root, with `/`. */
  path: string
  folder: string
  text: string
  /** What it imports when the program runs: paths of ours, or package names. Types vanish and do not count. */
  imports: string[]
}

const SOURCES = FOLDERS.flatMap((folder) => filesUnder(join(ROOT, folder)).map(read))
const SOURCES_OF_SMALL_CLOUD = filesUnder(join(ROOT, SMALL_CLOUD, 'src')).map(read)

function filesUnder(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return filesUnder(path)
    return entry.name.endsWith('.ts') ? [path] : []
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
  return { path: name, folder: name.split('/')[0]!, text, imports }
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
  const file = [`${target}.ts`, join(target, 'index.ts')].find((candidate) => existsSync(candidate))
  return relative(ROOT, file ?? target)
}

const isOfSmallCloud = (target: string): boolean => /^#small-cloud(\/|$)/.test(target)

const isOurs = (target: string): boolean => FOLDERS.includes(target.split('/')[0]!) && target.includes('/')

describe('the import law', () => {
  it.each(FOLDERS)('holds in %s', (folder) => {
    const strays = SOURCES.filter((source) => source.folder === folder).flatMap(({ path, imports }) =>
      imports.filter((target) => !isAllowed(folder, target)).map((target) => `${path} imports ${target}`),
    )
    expect(strays).toEqual([])
  })

  function isAllowed(folder: string, target: string): boolean {
    if (isOfSmallCloud(target)) return folder === 'cli'
    if (isOurs(target))
      return [folder, ...LAW[folder]!].some(
        (place) => target.startsWith(`${place}/`) || target === `${place}.ts`,
      )
    return PACKAGES[folder]!.some((name) =>
      name.endsWith(':') ? target.startsWith(name) : target === name || target.startsWith(`${name}/`),
    )
  }

  it('lets no backend import another', () => {
    const strays = SOURCES.filter(({ path }) => /^backends\/[^/]+\//.test(path)).flatMap(
      ({ path, imports }) => {
        const own = path.split('/').slice(0, 2).join('/')
        const common = ['backends/backend.ts', 'backends/errors.ts', 'backends/http.ts']
        return imports
          .filter(
            (target) =>
              target.startsWith('backends/') && !target.startsWith(`${own}/`) && !common.includes(target),
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

describe('the small cloud', () => {
  const { exports, dependencies } = JSON.parse(
    readFileSync(join(ROOT, SMALL_CLOUD, 'package.json'), 'utf8'),
  ) as { exports: Record<string, string>; dependencies: Record<string, string> }
  const strays = (sources: Source[], isAllowed: (target: string) => boolean): string[] =>
    sources.flatMap(({ path, imports }) =>
      imports.filter((target) => !isAllowed(target)).map((target) => `${path} imports ${target}`),
    )

  it('imports nothing of the product, and no package that it does not name', () => {
    const names = ['node:', ...Object.keys(dependencies)]
    const isAllowed = (target: string): boolean =>
      target.startsWith(`${SMALL_CLOUD}/src/`) || names.some((name) => target.startsWith(name))
    expect(strays(SOURCES_OF_SMALL_CLOUD, isAllowed)).toEqual([])
  })

  it('has tests that import nothing of the product', () => {
    const tests = filesUnder(join(ROOT, SMALL_CLOUD, 'test')).map(read)
    const isAllowed = (target: string): boolean =>
      target.startsWith(`${SMALL_CLOUD}/`) || !(isOurs(target) || /^(test\/|\.|#)/.test(target))
    expect(strays(tests, isAllowed)).toEqual([])
  })

  it('is imported in cli/dev and by tests only, types included', () => {
    const users = SOURCES.filter(({ text }) => /['"]#small-cloud|packages\/small-cloud\/src/.test(text))
    expect(users.map(({ path }) => path).filter((path) => !path.startsWith('cli/dev/'))).toEqual([])
    expect(users).not.toEqual([])
  })

  it('exports every part that others import', () => {
    const others = [...SOURCES, ...filesUnder(join(ROOT, 'test')).map(read)]
    const imported = others.flatMap(({ text }) =>
      [...text.matchAll(/from '#small-cloud([/\w-]*)'/g)].map(([, part]) => `.${part!}`),
    )
    expect(new Set(imported)).toEqual(new Set(Object.keys(exports).filter((name) => !name.endsWith('.json'))))
  })

  it('keeps source files within 300 lines', () => {
    const long = SOURCES_OF_SMALL_CLOUD.filter(({ text }) => text.split('\n').length > 301)
    expect(long.map(({ path }) => path)).toEqual([])
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

  it('keeps source files within 300 lines', () => {
    const long = SOURCES.filter(({ text }) => text.split('\n').length > 301).map(({ path }) => path)
    expect(long).toEqual([])
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
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'devDependencies', Record<string, string>>
    const table = readFileSync(join(ROOT, 'docs', 'decisions', '0002-dependencies.md'), 'utf8')
    const listed = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!)
    expect(listed.sort()).toEqual([...Object.keys(dependencies), ...Object.keys(devDependencies)].sort())
  })
})

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}
