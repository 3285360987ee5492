// The docs site: `npm run docs`. Pages are Markdown in docs/ and at the root of the repository; a link that leads nowhere fails the build.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible-docs')
const REPOSITORY = 'https://github.com/scttfrdmn/crucible'
const PAGES_AT_THE_ROOT = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'AGENTS.md', 'CHANGELOG.md', 'SECURITY.md']

/** The order of the site: folders of docs/, each with its pages in reading order. test/docs.test.ts checks that no page is left out. */
const ORDER = JSON.parse(readFileSync(join(ROOT, 'docs', 'order.json'), 'utf8'))

const titleOf = (path) => /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))[1]
const item = (path) => ({ text: titleOf(path), link: `/${path.replace(/\.md$/, '')}` })
const decisions = readdirSync(join(ROOT, 'docs', 'decisions')).map((name) => `docs/decisions/${name}`)

/** The target of a page's link on this site: files and folders that are not its pages are shown by the repository. */
function targetOf(href, page) {
  if (/^(?:[a-z]+:|#|\/)/.test(href)) return href
  const source = page === 'index.md' ? 'README.md' : page
  const path = relative(ROOT, join(ROOT, dirname(source), href.replace(/#.*/, '')))
  const isPage = /^docs\/.*\.md$|^[A-Z]+\.md$/.test(path)
  return isPage || !existsSync(join(ROOT, path)) ? href : `${REPOSITORY}/blob/main/${path}`
}

/** The picture of a diagram, which GitHub draws and this site does not: an SVG of docs/images with the digest of the diagram's text. */
function pictureOf(diagram) {
  const digest = createHash('sha256').update(diagram).digest('hex').slice(0, 8)
  const path = join(ROOT, 'docs', 'images', `diagram-${digest}.svg`)
  if (!existsSync(path)) throw new Error(`A diagram has changed: draw it again, as ${relative(ROOT, path)}.`)
  const alt = diagram.replace(/[^\w\s.,:]+/g, ' ').trim()
  return `<p><img alt="${alt}" src="data:image/svg+xml;base64,${readFileSync(path, 'base64')}"></p>`
}

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
  ignoreDeadLinks: [/^http:\/\/localhost/],
  markdown: {
    // The anchors that GitHub gives to headings, and that the pages link to.
    anchor: {
      slugify: (heading) =>
        heading
          .trim()
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, '')
          .replace(/\s/g, '-'),
    },
    // Code such as `{{ run.id }}` is text, not an expression of Vue. Blocks have this mark already; code in sentences does not.
    config: (md) => {
      md.core.ruler.push('links to the repository', ({ tokens, env }) => {
        const links = tokens
          .flatMap(({ children }) => children ?? [])
          .filter(({ type }) => type === 'link_open')
        for (const link of links) link.attrSet('href', targetOf(link.attrGet('href'), env.relativePath))
      })
      const { code_inline: render, fence } = md.renderer.rules
      md.renderer.rules.code_inline = (...args) => render(...args).replace(/^<code/, '<code v-pre')
      md.renderer.rules.fence = (tokens, index, ...more) => {
        const { info, content } = tokens[index]
        return info.trim() === 'mermaid' ? pictureOf(content) : fence(tokens, index, ...more)
      }
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
