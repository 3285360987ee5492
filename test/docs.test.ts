import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { JOB_STATES } from '../core/job'

const ROOT = join(__dirname, '..')

const PAGES = [
  '.',
  'docs',
  'docs/backends',
  'docs/decisions',
  'packages/small-cloud',
  'examples/char-lm',
  'examples/nanogpt',
].flatMap((folder) =>
  readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
)
const FOLDERS = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
  .map(({ name }) => name)
const SCRIPTS = (JSON.parse(read('package.json')) as { scripts: Record<string, string> }).scripts

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function all(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found]) => found!)
}

describe.each(PAGES)('%s', (page) => {
  const text = read(page)

  it('links to pages that exist', () => {
    const links = all(text, /\]\(([^)#]+)(?:#[^)]*)?\)/g).filter((link) => !/^[a-z]+:/.test(link))
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(page), link)))).toEqual([])
  })

  it('names files that exist', () => {
    const paths = all(text, /`([\w.-]+(?:\/[\w.-]+)*(?:\/|\.\w+))`/g).filter((path) => path.includes('/'))
    // Decisions tell of their day; what an example leaves behind is not in the tree.
    const ours = paths.filter(
      (path) =>
        FOLDERS.includes(path.split('/')[0]!) &&
        !path.startsWith('dist/') &&
        !dirname(page).startsWith('examples/'),
    )
    expect(ours.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  it('calls scripts that exist', () => {
    const scripts = all(text, /npm run (?:--\w+ )*([\w-]+)/g)
    expect(scripts.filter((script) => SCRIPTS[script] === undefined)).toEqual([])
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
    const row = read('docs/glossary.md')
      .split('\n')
      .find((line) => line.includes('**state**'))
    expect(all(row!.split('|')[1]!, /`([\w-]+)`/g)).toEqual([...JOB_STATES])
  })
})
