// Writes backends/ec2/market/catalog.json, the fallback prices for an unreachable price list, from that list. `node
// tools/gen-ec2-catalog.mjs [REGION ...]` with AWS credentials; the default is us-east-1.
import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import prettier from 'prettier'
import './typescript.mjs'

const require = createRequire(import.meta.url)
const { TYPES_DEFAULT } = require('../backends/ec2/config.ts')
const { createSdkApi } = require('../backends/ec2/sdk/index.ts')

/** The default types, and those with other chips that users may allow. */
const PATTERNS = [...TYPES_DEFAULT, 'inf*', 'trn*']
const wanted = new RegExp(
  `^(?:${PATTERNS.map((pattern) => pattern.replaceAll('.', '\\.').replaceAll('*', '.*')).join('|')})$`,
)
const LIMIT_MS = 300_000

const regions = process.argv.length > 2 ? process.argv.slice(2) : ['us-east-1']
const endpoint = process.env.AWS_ENDPOINT_URL
const usdPerHour = {}
const diskUsdPerGiBMonth = {}
for (const region of regions) {
  const { market } = createSdkApi({ region, ...(endpoint && { endpoint }) })
  const signal = globalThis.AbortSignal.timeout(LIMIT_MS)
  const prices = await market.onDemandPrices(region, signal)
  const known = [...prices].filter(([type]) => wanted.test(type)).sort(([a], [b]) => (a < b ? -1 : 1))
  if (known.length === 0) throw new Error(`the price list has nothing for ${region}`)
  const disk = await market.diskUsdPerGiBMonth(region, signal)
  if (disk === undefined) throw new Error(`the price list has no disks for ${region}`)
  diskUsdPerGiBMonth[region] = Number(disk)
  usdPerHour[region] = Object.fromEntries(known.map(([type, price]) => [type, Number(price)]))
}
const catalog = {
  observedAt: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  source: 'AWS price list: Linux, shared tenancy, on demand. Made by tools/gen-ec2-catalog.mjs.',
  usdPerHour,
  diskUsdPerGiBMonth,
}
const file = new URL('../backends/ec2/market/catalog.json', import.meta.url)
const style = await prettier.resolveConfig(file)
writeFileSync(file, await prettier.format(JSON.stringify(catalog), { ...style, parser: 'json' }))
process.stdout.write(
  `${regions.map((region) => `${region}: ${Object.keys(usdPerHour[region]).length} types`).join(', ')}\n`,
)
