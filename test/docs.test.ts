import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { beforeAll, describe, expect, it } from '@jest/globals'
import { parseAllDocuments } from 'yaml'
import { referenceParts } from '../cli/kit/reference'
import { COMMANDS } from '../cli/program'
import { withoutAliases } from '../cli/kit/aliases'
import { JOB_STATES } from '../core/job/job'
import { blocksOf, slugsOf, wordsOf } from './docs/markdown'
import { RUN_BY } from './docs/runs'

const ROOT = join(__dirname, '..')
/** A page longer than this is split or cut. */
const WORDS_MAX = 1_500
/** All pages for users together: more than this is not read. */
const WORDS_MAX_OF_ALL = 22_000

const PAGES = [
  ...pagesIn('.'),
  ...pagesUnder('docs'),
  ...pagesIn('packages/small-cloud'),
  ...pagesIn('examples/char-lm'),
  ...pagesIn('examples/nanogpt'),
  ...pagesIn('bindings/python'),
  ...pagesIn('bindings/python/truffle'),
  ...pagesIn('bindings/python/crucible'),
]
const FOLDERS = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
  .map(({ name }) => name)
const SCRIPTS = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts

/** First parts of paths in the store and on a machine. */
const ELSEWHERE = [
  'attempts',
  'checkpoints',
  'control',
  'drains',
  'jobs',
  'limits',
  'output',
  'places',
  'sends',
  'waiting',
  'x-1',
]

const TREE = FOLDERS.filter((folder) => !['dist', 'coverage'].includes(folder)).flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => !path.includes('node_modules'))
    .map((path) => join(folder, path)),
)

/** Whether the path is in the repository, also below a folder that the sentence names: `replay/` is `test/replay/`. */
function isInTree(path: string): boolean {
  return existsSync(join(ROOT, path)) || TREE.some((file) => `/${file}/`.includes(`/${path}`))
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** A page without the parts that are generated from help texts and settings. */
function withoutGenerated(page: string): string {
  return page.replace(/<!-- ([\w-]+) -->[^]*?<!-- \/\1 -->/g, '')
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
}

function pagesUnder(folder: string): string[] {
  const folders = readdirSync(join(ROOT, folder), { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !entry.name.startsWith('.'),
  )
  return [...pagesIn(folder), ...folders.flatMap(({ name }) => pagesUnder(join(folder, name)))]
}

function all(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found]) => found!)
}

describe.each(PAGES)('%s', (page) => {
  const text = read(page)
  const isDecision = dirname(page) === 'docs/decisions'
  /** A page for people who work on the code: every path in it is one of the repository, unless `ELSEWHERE` names it. */
  const isAboutCode = isDecision || ['.', 'docs/design'].includes(dirname(page))

  it('links to pages and headings that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(([, path = '', heading]) => ({
      path,
      heading,
    }))
    const dead = links.filter(({ path, heading }) => {
      if (/^[a-z]+:/.test(path)) return false
      const target = path === '' ? page : join(dirname(page), path)
      if (!existsSync(join(ROOT, target))) return true
      return heading !== undefined && !slugsOf(read(target)).includes(heading)
    })
    expect(dead).toEqual([])
  })

  it('names files that exist', () => {
    const paths = all(text, /`([\w.-]+(?:\/[\w.-]+)*(?:\/|\.\w+))`/g).filter((path) => path.includes('/'))
    // What an example leaves behind is not in the tree.
    const ours = paths.filter(
      (path) =>
        (isAboutCode || FOLDERS.includes(path.split('/')[0]!)) &&
        !path.startsWith('dist/') &&
        !dirname(page).startsWith('examples/'),
    )
    expect(ours.filter((path) => !isInTree(path) && !ELSEWHERE.includes(path.split('/')[0]!))).toEqual([])
  })

  it('calls scripts that exist', () => {
    const scripts = all(text, /npm run (?:--\w+ )*([\w:-]+)/g)
    expect(scripts.filter((script) => SCRIPTS[script] === undefined)).toEqual([])
  })

  it(`has at most ${WORDS_MAX} words`, () => {
    expect(wordsOf(text).length).toBeLessThanOrEqual(isDecision ? Infinity : WORDS_MAX)
  })

  it('has shell blocks of the right syntax, each run by a test when it says sh', () => {
    for (const { text: script } of blocksOf(text, 'sh'))
      expect(spawnSync('bash', ['-n'], { input: script, encoding: 'utf8' }).stderr).toBe('')
    if (blocksOf(text, 'sh').length > 0) expect(existsSync(join(ROOT, RUN_BY[page] ?? 'none'))).toBe(true)
  })

  it('has YAML and JSON blocks that can be read', () => {
    for (const { text: yaml } of blocksOf(text, 'yaml'))
      for (const document of parseAllDocuments(yaml)) expect(document.errors).toEqual([])
    for (const { text: json } of blocksOf(text, 'json')) JSON.parse(json)
  })
})

describe('the Python blocks of the pages', () => {
  it('compile', () => {
    const programs = PAGES.flatMap((page) =>
      blocksOf(read(page), 'python').map(({ text }) => ({ page, text })),
    )
    expect(programs.length).toBeGreaterThan(3)
    const check =
      'import ast, json, sys\nfor one in json.load(sys.stdin): ast.parse(one["text"], one["page"])'
    execFileSync('python3', ['-c', check], { input: JSON.stringify(programs) })
  })
})

describe('the commands in the pages', () => {
  let optionsOf: Map<string, Set<string>>

  beforeAll(async () => {
    const parts = await referenceParts()
    const optionsIn = (help: string): string[] => all(help, /(?:^|[\s,])(--?[a-z][\w-]*)/gm)
    const shared = optionsIn(parts.find(({ name }) => name === 'job-options')!.text)
    const sections = parts.flatMap(({ text }) => `\n${text}`.split('\n## crucible ').slice(1))
    optionsOf = new Map(
      sections.map((help) => {
        const own = [...optionsIn(help), '--json', '--help', '-h']
        return [
          help.split('\n')[0]!,
          new Set(help.includes('and the job options') ? [...own, ...shared] : own),
        ]
      }),
    )
  })

  it.each(PAGES)('exist, with their options: %s', (page) => {
    const lines = blocksOf(read(page))
      .filter(({ language }) => ['', 'sh', 'console', 'text'].includes(language))
      .flatMap(({ text }) => text.split(/\n|&& /))
      // Lines of a crontab begin with five fields.
      .map((line) => line.replace(/^(?:[\d*/,-]+ ){5}/, ''))
    const inline = all(read(page), /`((?:\.\/)?crucible [^`]+)`/g)
    const commands = [...lines, ...inline].flatMap((line) => {
      const [, given] = /^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.\/)?crucible ([a-z-].*)/.exec(line) ?? []
      return given === undefined ? [] : [given.replace(/\s+#.*| {2,}.*| -- .*|[|>;].*/g, '')]
    })
    const unknown = commands.filter((command) => {
      const [name = '', ...words] = withoutAliases(command.split(/\s+/))
      if (name === 'COMMAND' || name === 'help' || name.startsWith('-')) return false
      const options = words
        .filter((word) => /^--?[a-z]/.test(word))
        .map((word) => word.replace(/[=,.;:)]+.*$/, ''))
      if (!COMMANDS.some((each) => each.name === name)) return true
      return options.some((option) => !optionsOf.get(name)!.has(option))
    })
    expect(unknown).toEqual([])
  })
})

describe('the code', () => {
  it('names pages of docs that exist', () => {
    const sources = FOLDERS.filter((folder) => !['dist', 'docs', 'coverage'].includes(folder)).flatMap(
      (folder) =>
        readdirSync(join(ROOT, folder), { withFileTypes: true, recursive: true })
          .filter((entry) => entry.isFile() && /\.(?:ts|mjs|py|yml)$/.test(entry.name))
          .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
          .filter((path) => !path.includes('node_modules')),
    )
    const named = [...sources, 'docker-compose.yml', 'Dockerfile'].flatMap((path) =>
      all(read(path), /\b(docs\/[\w/-]+\.md)\b/g).map((page) => ({ path, page })),
    )
    expect(named.length).toBeGreaterThan(50)
    expect(named.filter(({ page }) => !existsSync(join(ROOT, page)))).toEqual([])
  })
})

describe('README and docs', () => {
  it(`have at most ${WORDS_MAX_OF_ALL} words, decisions and generated parts aside`, () => {
    const pages = PAGES.filter((page) => page === 'README.md' || page.startsWith('docs/'))
    const words = pages
      .filter((page) => dirname(page) !== 'docs/decisions')
      .flatMap((page) => wordsOf(withoutGenerated(read(page))))
    expect(words.length).toBeGreaterThan(10_000)
    expect(words.length).toBeLessThanOrEqual(WORDS_MAX_OF_ALL)
  })
})

describe('the order of the site', () => {
  it('has every page of docs once', () => {
    const ordered = Object.values(JSON.parse(read('docs/order.json')) as Record<string, string[]>).flat()
    const pages = pagesUnder('docs').filter((page) => dirname(page) !== 'docs/decisions')
    expect(ordered.sort()).toEqual(pages.sort())
  })
})

describe('ARCHITECTURE.md', () => {
  it('has every folder of the tree', () => {
    const drawn = all(read('ARCHITECTURE.md'), /^\| `(\w+)\//gm)
    const needed = FOLDERS.filter((folder) => !['dist', 'docs', 'examples', 'coverage'].includes(folder))
    expect(needed.filter((folder) => !drawn.includes(folder))).toEqual([])
  })
})

describe('the glossary', () => {
  it('has every state of a job', () => {
    const row = read('docs/reference/glossary.md')
      .split('\n')
      .find((line) => line.includes('**state**'))
    expect(all(row!.split('|')[1]!, /`([\w-]+)`/g)).toEqual([...JOB_STATES])
  })
})
