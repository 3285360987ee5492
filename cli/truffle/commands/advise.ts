import { Argument, Option, type Command } from 'commander'
import {
  adviseFor,
  PURPOSES,
  questionsFor,
  type Advice,
  type AdviceQuery,
  type Purpose,
} from '../../../backends/ec2/capacity'
import { CrucibleError } from '../../../client/errors'
import { countArgument } from '../../kit/arguments'
import { examples } from '../../examples'
import type { Output } from '../../kit/output'
import { addShared, daysArgument, type SharedOptions } from '../options'
import type { Session } from '../session'

interface Options extends SharedOptions {
  purpose?: Purpose
  instanceType?: string
  instanceTypes?: string
  machines?: number
  days?: number
  scheduled?: Choice
  interruptible?: Choice
  scaling?: Choice
  guaranteed?: Choice
}

type Choice = 'yes' | 'no'

const MACHINES_MAX = 10_000
const COLUMNS = ['use_case', 'reservation_type', 'reasons', 'commands', 'corrections', 'sources']

export function define(command: Command, session: Session): void {
  command.description(
    'Find the kind of capacity for a use case: a Capacity Block, an on-demand reservation, spot or on demand. Asks at a terminal; otherwise, ' +
      'options answer.',
  )
  const choice = (flags: string, text: string): Option =>
    new Option(`${flags} <yes|no>`, text).choices(['yes', 'no'])
  addShared(
    command
      .addArgument(new Argument('[purpose]', 'purpose, instead of --purpose').choices(PURPOSES))
      .addOption(new Option('--purpose <purpose>', 'purpose of the machines').choices(PURPOSES))
      .option('--instance-type <type>', 'instance type (default: p5.48xlarge; for inference inf2.xlarge)')
      .addOption(new Option('--instance-types <type>').hideHelp())
      .option('--machines <n>', 'how many', countArgument(MACHINES_MAX))
      .option('--days <n>', 'days of one run', daysArgument)
      .addOption(choice('--scheduled', 'training: its dates are known'))
      .addOption(choice('--interruptible', 'it continues from a checkpoint after an interruption'))
      .addOption(choice('--scaling', 'inference: the number of machines follows the load'))
      .addOption(
        choice('--guaranteed', 'development, experiments: a launch must never fail for lack of capacity'),
      ),
  )
    .addHelpText(
      'after',
      examples(
        ['truffle advise', 'asks'],
        [
          'truffle advise --purpose training --scheduled yes --days 10 --machines 32 --interruptible no',
          'a long run',
        ],
        ['truffle advise --purpose inference --machines 20 --scaling yes', 'a service'],
      ),
    )
    .action((purpose: Purpose | undefined, options: Options) =>
      advise(session, purpose === undefined ? options : { ...options, purpose }),
    )
}

async function advise(session: Session, options: Options): Promise<void> {
  const wish = await wishOf(session, options)
  const advice = adviseFor(wish)
  session.answer({
    command: 'advise',
    results: [
      {
        use_case: advice.useCase,
        reservation_type: advice.kind,
        reasons: advice.reasons,
        commands: advice.commands,
        corrections: advice.corrections,
        sources: advice.sources,
      },
    ],
    columns: COLUMNS,
    unanswered: [],
    notes: [],
    show: (out) => show(session, out, advice),
  })
}

/** Flag and wording of each question. */
const QUESTIONS: Readonly<Record<string, { flag: string; text: string }>> = {
  machines: { flag: '--machines', text: 'How many machines?' },
  days: { flag: '--days', text: 'How many days does one run take?' },
  isScheduled: { flag: '--scheduled', text: 'Are its dates known?' },
  isInterruptible: {
    flag: '--interruptible',
    text: 'Can it continue from a checkpoint after an interruption?',
  },
  isScaling: { flag: '--scaling', text: 'Does the number of machines follow the load?' },
  isGuaranteed: { flag: '--guaranteed', text: 'Must every launch succeed?' },
}

async function wishOf(session: Session, options: Options): Promise<AdviceQuery> {
  const purpose = options.purpose ?? (await askPurpose(session))
  const isYes = (given: Choice | undefined): boolean | undefined =>
    given === undefined ? undefined : given === 'yes'
  const known: Partial<Record<keyof AdviceQuery, number | boolean | undefined>> = {
    machines: options.machines,
    days: options.days,
    isScheduled: isYes(options.scheduled),
    isInterruptible: isYes(options.interruptible),
    isScaling: isYes(options.scaling),
    isGuaranteed: isYes(options.guaranteed),
  }
  for (const name of questionsFor(purpose)) {
    if (known[name] !== undefined) continue
    // The dates decide whether days matter.
    if (name === 'days' && known.isScheduled === false) continue
    known[name] = await askFor(session, name)
  }
  const type =
    options.instanceType ?? options.instanceTypes ?? (purpose === 'inference' ? 'inf2.xlarge' : 'p5.48xlarge')
  return { machines: 1, ...known, purpose, type } as AdviceQuery
}

async function askPurpose(session: Session): Promise<Purpose> {
  const answer = await reply(session, `Purpose (${PURPOSES.join(', ')})?`, '--purpose')
  const found = PURPOSES.find((one) => answer !== '' && one.startsWith(answer.toLowerCase()))
  if (found !== undefined) return found
  throw new CrucibleError('usage', `${JSON.stringify(answer)} is not a purpose.`, {
    hint: `Write one of ${PURPOSES.join(', ')}.`,
  })
}

async function askFor(session: Session, name: keyof AdviceQuery): Promise<number | boolean> {
  const { flag, text } = QUESTIONS[name]!
  const isNumber = name === 'machines' || name === 'days'
  const answer = await reply(session, isNumber ? text : `${text} [y/N]`, flag)
  if (!isNumber) return /^y(es)?$/i.test(answer)
  const number = Number(answer === '' ? '1' : answer)
  if (number > 0 && (name === 'days' || Number.isInteger(number))) return number
  throw new CrucibleError('usage', `${JSON.stringify(answer)} is not a number of ${name}.`, {
    hint: `Answer with a number, or pass ${flag}.`,
  })
}

async function reply(session: Session, question: string, flag: string): Promise<string> {
  if (session.ask === undefined)
    throw new CrucibleError('usage', `${flag} is missing.`, {
      hint: `Write it with its value, or answer at a terminal: ${question}`,
    })
  return (await session.ask(`${question} `)).trim()
}

const KINDS: Readonly<Record<Advice['kind'], string>> = {
  'capacity-block': 'Capacity Block',
  odcr: 'on-demand capacity reservation (ODCR)',
  spot: 'spot machines',
  'on-demand': 'on-demand machines',
}

function show(session: Session, out: Output, advice: Advice): void {
  out.line(session.title('🧭', `${advice.useCase}: ${KINDS[advice.kind]}`))
  for (const reason of advice.reasons) out.line(`   ${reason}`)
  out.block('\nCommon misreadings:')
  for (const correction of advice.corrections) out.line(`   ${correction}`)
  out.block('\nNext:')
  for (const one of advice.commands) out.line(`   ${one}`)
  out.block('\nSource:')
  for (const source of advice.sources) out.line(`   ${source}`)
}
