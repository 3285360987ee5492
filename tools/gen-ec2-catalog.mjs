// Writes backends/ec2/market/catalog.json, the fallback prices for an unread price list. Run for each release, either
// `node tools/gen-ec2-catalog.mjs [REGION ...]` with AWS credentials, which reads the price list (the default is us-east-1), or
// `node tools/gen-ec2-catalog.mjs --list FILE` without any: FILE is pkg/providers/pricing/zz_generated.pricing_aws.go of Karpenter, which publishes
// the list of us-east-1 every few weeks; the price of disks stays.
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parseArgs } from 'node:util'
import prettier from 'prettier'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { TYPES_DEFAULT } = require('../backends/ec2/config.ts')
const { createSdkApi } = require('../backends/ec2/sdk/index.ts')

/** The default types, and others that users may allow: other chips, and the CPU machines of today. */
const PATTERNS = [
  ...TYPES_DEFAULT,
  'inf*',
  'trn*',
  ...['c', 'm', 'r'].flatMap((family) => ['7a', '8a', '8g', '8i'].map((kind) => `${family}${kind}.*`)),
]
const wanted = new RegExp(
  `^(?:${PATTERNS.map((pattern) => pattern.replaceAll('.', '\\.').replaceAll('*', '.*')).join('|')})$`,
)
const LIMIT_MS = 300_000
const FILE = new URL('../backends/ec2/market/catalog.json', import.meta.url)

const { values, positionals } = parseArgs({ options: { list: { type: 'string' } }, allowPositionals: true })
const catalog = values.list === undefined ? await askAws(positionals) : readList(values.list)
const style = await prettier.resolveConfig(FILE)
writeFileSync(FILE, await prettier.format(JSON.stringify(catalog), { ...style, parser: 'json' }))
for (const [region, prices] of Object.entries(catalog.usdPerHour))
  process.stdout.write(`${region}: ${Object.keys(prices).length} types\n`)

async function askAws(named) {
  const regions = named.length > 0 ? named : ['us-east-1']
  const endpoint = process.env.AWS_ENDPOINT_URL
  const usdPerHour = {}
  const diskRates = {}
  for (const region of regions) {
    const { market } = createSdkApi({ region, ...(endpoint && { endpoint }) })
    const signal = globalThis.AbortSignal.timeout(LIMIT_MS)
    usdPerHour[region] = chosen(region, await market.onDemandPrices(region, signal))
    const disk = await market.diskRates(region, signal)
    if (disk === undefined) throw new Error(`the price list has no disks for ${region}`)
    diskRates[region] = disk
  }
  return {
    observedAt: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    source: 'AWS price list: Linux, shared tenancy, on demand. Made by tools/gen-ec2-catalog.mjs.',
    usdPerHour,
    diskRates,
  }
}

function readList(file) {
  const text = readFileSync(file, 'utf8')
  const [, observedAt, region] = /generated at (\S+) for (\S+)/.exec(text) ?? []
  if (region === undefined) throw new Error(`${file} does not say when and for which Region it was generated`)
  const { diskRates } = JSON.parse(readFileSync(FILE, 'utf8'))
  const prices = [...text.matchAll(/"([a-z0-9-]+\.[a-z0-9-]+)": ([0-9.]+)/g)].map(([, type, usd]) => [
    type,
    usd,
  ])
  return {
    observedAt,
    source: `AWS price list for ${region}, Linux, shared tenancy, on demand; as published with Karpenter (zz_generated.pricing_aws.go). Made by tools/gen-ec2-catalog.mjs.`,
    usdPerHour: { [region]: chosen(region, prices) },
    diskRates,
  }
}

function chosen(region, prices) {
  const known = [...prices].filter(([type]) => wanted.test(type)).sort(([a], [b]) => (a < b ? -1 : 1))
  if (known.length === 0) throw new Error(`the price list has nothing for ${region}`)
  return Object.fromEntries(known.map(([type, price]) => [type, Number(price)]))
}
