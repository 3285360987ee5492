/** Labelled scripts that can be run here: those of `scripts/` to prove their labels, those of `suggest/` to prove the suggested diffs. */
import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { analyzeAndSuggest, type PythonParser } from '../../../packages/analyzer/src/analyze'
import type { EnvironmentName } from '../../habits/environments'
import type { NeedsLibraries } from '../../kit/libraries'
import { filesOf, samplesIn, type Label } from '../corpus'
import { live, type Outcome, type Script } from './life'

export interface Case extends NeedsLibraries {
  name: string
  environment: EnvironmentName
  script: Script
  /** Whether the end must be that of an undisturbed run, must not be, or is not compared. */
  end: 'same' | 'other' | 'any'
  savesCheckpoints: boolean
  /** Whether it continues where it was, at least in part. */
  resumes: boolean
}

interface Labelled {
  environment?: EnvironmentName
  args?: readonly string[]
  /** Arguments of an attempt that resumes. */
  resumeArgs?: readonly string[]
  check: string
  saves: string
  final: string
  first?: string
  secondsPerLine?: number
  settleMs?: number
  end: Case['end']
}

const nothing = (): { args: string[]; env: Record<string, string> } => ({ args: [], env: {} })

/** Of `suggest/`, before the change: it starts again at the beginning. */
const NO_SAVES: Labelled = { check: 'import torch', saves: 'checkpoints', final: 'final.pt', end: 'same' }

/** How scripts with labels are run. What they must do is in the labels. */
const LABELLED: Readonly<Record<string, Labelled>> = {
  'torch-complete-state': {
    check: 'import torch, numpy',
    saves: 'state',
    final: 'final.pt',
    secondsPerLine: 0.2,
    end: 'same',
  },
  'accelerate-state-folder': {
    check: 'import accelerate',
    resumeArgs: ['--resume_from_checkpoint', 'latest'],
    saves: 'states',
    final: 'final.pt',
    secondsPerLine: 0.05,
    end: 'same',
  },
  'plain-loop': {
    check: 'import torch',
    saves: 'checkpoints',
    final: 'final.pt',
    secondsPerLine: 0.2,
    end: 'same',
  },
  'scheduler-not-restored': {
    check: 'import torch, click',
    args: ['--epochs', '20'],
    resumeArgs: ['--resume', 'last.pt'],
    saves: 'last.pt',
    final: 'final.pt',
    first: 'epoch 0 ',
    settleMs: 50,
    secondsPerLine: 0.1,
    end: 'other',
  },
  'jax-npz-loop': {
    environment: 'plain',
    check: 'import jax',
    saves: 'state',
    final: 'final.npz',
    secondsPerLine: 0.3,
    end: 'same',
  },
  'sklearn-partial-fit': {
    environment: 'plain',
    check: 'import sklearn.linear_model',
    saves: 'state',
    final: 'final.npy',
    first: 'round 0 ',
    secondsPerLine: 0.1,
    end: 'same',
  },
  'torch-epochs': NO_SAVES,
  'torch-gan': NO_SAVES,
  'torch-steps': NO_SAVES,
  'torch-trainer-class': NO_SAVES,
}

export function labelledCases(): Case[] {
  return [...samplesIn('scripts'), ...samplesIn('suggest')].flatMap(({ name, folder, label }) => {
    const how = LABELLED[name]
    if (how === undefined) return []
    const { args = [], resumeArgs = [], environment = 'torch', check, end, ...rest } = how
    const script = {
      ...rest,
      folder,
      command: [...label.run.split(' '), ...args],
      resume: () => ({ ...nothing(), args: resumeArgs }),
    }
    const isResumed = !['no', undefined].includes(label['canResume'] as string | undefined)
    const savesCheckpoints = label['savesCheckpoints'] === true
    return [{ name, environment, check, end, script, savesCheckpoints, resumes: isResumed }]
  })
}

interface SuggestLabel extends Label {
  outcome: string
  final: string
  environment?: EnvironmentName
  check?: string
  /** Where the changed program saves, if not where Crucible says. */
  saves?: string
  settleMs?: number
}

/** Scripts that cannot resume, with the suggested diff. */
export function suggestedCases(python: PythonParser): Case[] {
  return samplesIn('suggest').flatMap(({ name, folder, label: of }) => {
    const label = of as SuggestLabel
    if (label.outcome !== 'diff') return []
    const { diff } = analyzeAndSuggest(python, { files: filesOf(folder), command: label.run }).suggestion
    const { saves = 'checkpoints-of-job', final, settleMs = 0 } = label
    const script: Script = {
      folder,
      command: label.run.split(' '),
      saves,
      final,
      settleMs,
      resume: (saved) => ({ args: [], env: { CRUCIBLE_RESUME_FROM: saved } }),
      prepare: (copy) => apply(copy, diff!),
    }
    const { environment = 'torch', check = 'import torch' } = label
    return [{ name, environment, check, script, end: 'same', savesCheckpoints: true, resumes: true }]
  })
}

function apply(folder: string, diff: string): void {
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(folder) }
  execFileSync('git', ['apply', '--whitespace=nowarn', '-'], { cwd: folder, input: diff, env })
}

/** Runs a case; answers what is not as it should be. */
export async function prove(
  each: Case,
  { python, work, seed }: { python: string; work: string; seed: number },
): Promise<{ outcome: Outcome; wrong: string[] }> {
  const outcome = await live(each.script, { python, work: join(work, each.name), seed })
  const wrong: string[] = []
  if (outcome.hasSaved !== each.savesCheckpoints)
    wrong.push(outcome.hasSaved ? 'it saved while it trained' : 'it saved nothing')
  if (outcome.hasResumed !== each.resumes)
    wrong.push(outcome.hasResumed ? 'it resumed' : 'it started at the beginning')
  if (each.end === 'same' && outcome.difference !== undefined)
    wrong.push(`it ended otherwise: ${outcome.difference}`)
  if (each.end === 'other' && outcome.difference === undefined)
    wrong.push('it ended as if it had restored everything')
  return { outcome, wrong }
}
