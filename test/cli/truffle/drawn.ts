/** Regions that follow scripts, and states of them that are drawn. */
import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { readCliConfig } from '../../../cli/kit/config'
import { runTruffle } from '../../../cli/truffle/run'
import { testFolder } from '../../support/folders'
import { Paper, type Answer } from '../outside'
import { fakeOffering, fakeRegion, fakeReservation, type RegionScript } from './fake-region'

export const REGIONS = [
  'af-south-1',
  'ap-east-1',
  'ap-northeast-1',
  'ap-northeast-2',
  'ap-south-1',
  'ap-southeast-1',
  'ap-southeast-2',
  'ca-central-1',
  'eu-central-1',
  'eu-north-1',
  'eu-south-1',
  'eu-west-1',
  'eu-west-2',
  'eu-west-3',
  'me-south-1',
  'sa-east-1',
  'us-east-1',
  'us-east-2',
  'us-west-1',
  'us-west-2',
]
export const HOME = testFolder('truffle-regions')
export const NOW = Date.UTC(2027, 0, 10)

/** Runs a command on Regions that follow their scripts. */
export async function runOn(
  scripts: readonly RegionScript[],
  args: readonly string[],
  isTerminal = false,
): Promise<Answer> {
  const [stdout, stderr] = [new Paper(), new Paper()]
  if (isTerminal) stderr.isTTY = true
  const environment = { CRUCIBLE_HOME: HOME, AWS_REGION: 'us-east-1', AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }
  const exitCode = await runTruffle([...args, '--fresh'], {
    config: readCliConfig(environment, '/usr/local/bin/truffle'),
    stdout,
    stderr,
    signals: new EventEmitter(),
    exit: () => {},
    now: () => NOW,
    openRegion: (region) =>
      fakeRegion(
        scripts.find(({ name }) => name === region)!,
        REGIONS,
        NOW,
      ),
  })
  return { exitCode, stdout: stdout.text, stderr: stderr.text }
}

export const COMMANDS = [
  'search g5.xlarge',
  'search g5 --show-price --min-vcpus 4',
  'search nonsense9',
  'az p5.48xlarge --min-az-count 2',
  'spot g5.xlarge --show-savings --no-interruptions',
  'spot g5 p5 --scores 4 --max-price 0.2 --no-interruptions',
  'capacity',
  'capacity --odcr --gpu-only --available-only',
  'capacity --blocks',
  'capacity --odcr --min-capacity 9',
  'capacity --blocks --odcr --active-only',
  'capacity --topology',
  'quotas p5',
  'quotas --request 900',
  'capacity --blocks --offerings --count 4 --days 7',
  'validate p5.48xlarge --count 4 --days 7',
  'validate q1.large',
  'list',
  'list --accelerators',
  'version',
  'capacity --days 3',
  'search',
  'nonsense',
  'advise --purpose training',
]

const ERRORS = [
  'UnauthorizedOperation',
  'AuthFailure',
  'RequestLimitExceeded',
  'InternalError',
  'InvalidParameterValue',
  'OptInRequired',
  'ExpiredToken',
  'NeverHeardOf',
]

export const scriptOf = (region: string): fc.Arbitrary<RegionScript> =>
  fc.record(
    {
      name: fc.constant(region),
      error: fc.record({
        code: fc.constantFrom(...ERRORS),
        httpStatus: fc.constantFrom(400, 403, 500, 503),
        // Texts of others: quotes, control characters, line ends.
        message: fc.oneof(fc.constant('said "no"\u001b[31m\r\n,;'), fc.string()),
        only: fc.constantFrom(/./, /reservations|offerings/, /types/, /Price/, /subnets|quota/),
      }),
      before: fc.constantFrom(0, 1, 3).map((turns) => async () => {
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate)
      }),
      reservations: fc.constantFrom(
        [],
        [
          fakeReservation(region),
          fakeReservation(region, { id: `cr-2${region}`, state: 'assessing', tags: { 'a"b': '1,2\n' } }),
        ],
        [
          fakeReservation(region, {
            isBlock: true,
            type: 'p5.48xlarge',
            endsAtMs: NOW + 6e8,
            startsAtMs: NOW - 1e6,
          }),
        ],
        [fakeReservation(region, { state: 'payment-failed', total: 0, free: 0 })],
      ),
      offerings: fc.constantFrom([], [fakeOffering(region, NOW)]),
      quota: fc.constantFrom(0, 768),
    },
    { requiredKeys: ['name'] },
  )
