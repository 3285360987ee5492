// The docs site: `npm run docs`. Pages are Markdown in docs/ and at the root of the repository; a link that leads nowhere fails the build.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible-docs')
const PAGES_AT_THE_ROOT = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'AGENTS.md', 'CHANGELOG.md', 'SECURITY.md']

/** The order of the site: folders of docs/, each with its pages in reading order. test/docs.test.ts checks that no page is left out. */
const ORDER = JSON.parse(readFileSync(join(ROOT, 'docs', 'order.json'), 'utf8'))

const titleOf = (path) => /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))[1]
const item = (path) => ({ text: titleOf(path), link: `/${path.replace(/\.md$/, '')}` })
const decisions = readdirSync(join(ROOT, 'docs', 'decisions')).map((name) => `docs/decisions/${name}`)

export default {
  title: 'Crucible',
  description: 'Durable machine-learning jobs on spot, on-demand and reserved machines',
  srcDir: '..',
  outDir: join(CACHE, 'site'),
  cacheDir: join(CACHE, 'vite'),
  srcExclude: readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'docs')
    .map(({ name }) => `${name}/**`),
  rewrites: { 'README.md': 'index.md' },
  // Folders and files of the source tree are links for readers of the repository.
  ignoreDeadLinks: [
    /^http:\/\/localhost/,
    (link) => {
      const path = join(ROOT, link.replace(/^(?:\.{1,2}\/)+/, '').replace(/(?:\/index)?$/, ''))
      const isOutside = !path.startsWith(join(ROOT, 'docs'))
      const isPackage = /^(?:bindings|packages)\//.test(relative(ROOT, path)) && existsSync(`${path}.md`)
      return isOutside && (isPackage || (existsSync(path) && !path.endsWith('.md')))
    },
  ],
  markdown: {
    // Code such as `{{ run.id }}` is text, not an expression of Vue. Blocks have this mark already; code in sentences does not.
    config: (md) => {
      const { code_inline: render } = md.renderer.rules
      md.renderer.rules.code_inline = (...args) => render(...args).replace(/^<code/, '<code v-pre')
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/docs/start/install' },
      { text: 'Reference', link: '/docs/reference/cli' },
      { text: 'FAQ', link: '/docs/faq' },
    ],
    sidebar: [
      ...Object.entries(ORDER).map(([text, pages]) => ({ text, items: pages.map(item) })),
      { text: 'Decisions', collapsed: true, items: decisions.map(item) },
      { text: 'Project', items: PAGES_AT_THE_ROOT.map(item) },
    ],
  },
}
