// Writes docs/job.schema.json and the table of fields in docs/reference/job-file.md from intake/job-schema.ts.
// `node tools/gen-job-schema.mjs`; tests fail when one of them is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import prettier from 'prettier'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { jobFileJsonSchema } = require('../intake/job-schema.ts')
const { jobFieldTable } = require('../intake/job-table.ts')

const schemaFile = new URL('../docs/job.schema.json', import.meta.url)
const pageFile = new URL('../docs/reference/job-file.md', import.meta.url)
const style = await prettier.resolveConfig(schemaFile)
writeFileSync(
  schemaFile,
  await prettier.format(JSON.stringify(jobFileJsonSchema()), { ...style, parser: 'json' }),
)
const page = readFileSync(pageFile, 'utf8')
const marked = /(<!-- fields -->\n)[\s\S]*(<!-- \/fields -->)/
writeFileSync(
  pageFile,
  page.replace(marked, (_, begin, end) => `${begin}${jobFieldTable()}\n${end}`),
)
