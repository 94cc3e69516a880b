//! What a plan file says beside its parameters is not believed; a profile that is none is named.

use crate::shell::{Shell, error};
use serde_json::{Value, json};

type Change = &'static dyn Fn(&mut Value);

/// Fields that the parameters make, or that nothing sane can be.
const CHANGES: [(&str, Change); 25] = [
    ("scheme", &|p| p["scheme"] = json!("bgv")),
    ("log_n", &|p| p["log_n"] = json!(12)),
    ("slots", &|p| p["slots"] = json!(99)),
    ("q_bits", &|p| p["q_bits"][0] = json!(20)),
    ("p_bits", &|p| p["p_bits"] = json!([])),
    ("log_qp", &|p| p["log_qp"] = json!(1)),
    ("security_bits", &|p| p["security_bits"] = json!(256.0)),
    ("cost_model", &|p| p["cost_model"] = json!("none at all")),
    ("log2_p_fail", &|p| p["log2_p_fail"] = json!(-1000.0)),
    ("depth", &|p| p["depth"] = json!(100_000)),
    ("key_bytes", &|p| p["key_bytes"] = json!(1)),
    ("scratch_bytes", &|p| p["scratch_bytes"] = json!(1)),
    ("memory.table_bytes", &|p| shift(p, "table_bytes")),
    ("memory.prepared_key_bytes", &|p| shift(p, "prepared_key_bytes")),
    ("memory.working_bytes", &|p| p["memory"]["working_bytes"] = json!(1)),
    ("memory.total_bytes", &|p| p["memory"]["total_bytes"] = json!(1)),
    ("memory.key_bytes", &|p| p["memory"]["key_bytes"] = json!(u64::MAX)),
    ("rotations", &|p| p["rotations"] = json!([i64::MIN])),
    ("rotations", &|p| p["rotations"] = (0..10_000).collect::<Vec<i64>>().into()),
    ("routes", &|p| p["routes"] = json!({"row": 1, "keys": [1], "composed": {"2": [1, 1]}})),
    ("switch", &|p| p["switch"][0]["omega"] = json!(77)),
    ("switch", &|p| p["switch"] = json!([])),
    ("predicted_ms", &|p| p["circuit_ms"] = json!(-1.0)),
    ("predicted_ms", &|p| p["switch"][0]["predicted_ms"] = json!(-1.0)),
    ("nodes", &|p| p["nodes"][0]["level"] = json!(77)),
];

/// One byte more, in the sum too.
fn shift(plan: &mut Value, part: &str) {
    for field in [part, "total_bytes"] {
        let bytes = &mut plan["memory"][field];
        *bytes = json!(bytes.as_u64().unwrap() + 1);
    }
}

#[test]
fn fields_of_a_plan_that_its_parameters_do_not_make_are_refused_by_name() {
    let shell = Shell::new();
    let plan = ["plan", "--scheme", "bfv", "--depth", "1", "--insecure", "--rotations", "1", "--out", "plan.json"];
    shell.succeed(&plan);
    let plan: Value = serde_json::from_slice(&shell.read("plan.json")).unwrap();
    for (field, change) in CHANGES {
        let mut altered = plan.clone();
        change(&mut altered);
        shell.write("altered.json", altered.to_string().as_bytes());
        for command in
            [&["inspect", "altered.json"][..], &["keygen", "--plan", "altered.json", "--out", "keys", "--insecure"]]
        {
            let message = error(&shell.fail(command), "plan_field");
            assert!(message.contains(field), "{field}: {message}");
        }
        assert!(!shell.path("keys").exists());
    }
    // Of an earlier version, which counted otherwise, bytes are computed and not believed.
    let mut old = plan.clone();
    (old["version"], old["key_bytes"]) = (json!(1), json!(7));
    shell.write("old.json", old.to_string().as_bytes());
    assert_eq!(shell.succeed(&["inspect", "old.json"])["key_bytes"], plan["key_bytes"]);
    // Numbers that JSON has no room for, and those that no field takes.
    for (from, to) in [("\"depth\": 1", "\"depth\": -1"), ("\"log2_p_fail\": -128.0", "\"log2_p_fail\": NaN")] {
        let text = String::from_utf8(shell.read("plan.json")).unwrap();
        assert!(text.contains(from));
        shell.write("altered.json", text.replace(from, to).as_bytes());
        error(&shell.fail(&["inspect", "altered.json"]), "format");
    }
    error(&shell.fail(&["plan", "--scheme", "bgv", "--depth", "1", "--rotations", "9223372036854775807"]), "request");
}

#[test]
fn a_forecast_that_is_gone_is_made_anew() {
    let shell = Shell::new();
    shell.succeed(&["plan", "--scheme", "bgv", "--depth", "6", "--out", "plan.json"]);
    let mut plan: Value = serde_json::from_slice(&shell.read("plan.json")).unwrap();
    plan.as_object_mut().unwrap().remove("memory");
    plan["rotations"] = (1..=7000).collect::<Vec<i64>>().into();
    let keygen = |plan: &Value, kind: &str| {
        shell.write("plan.json", plan.to_string().as_bytes());
        error(&shell.fail(&["keygen", "--plan", "plan.json", "--out", "keys"]), kind)
    };
    // More keys than there is room for: once the file states their bytes, nothing but the forecast stands in the way.
    let message = keygen(&plan, "plan_field");
    plan["key_bytes"] = message.rsplit(' ').next().unwrap().parse::<u64>().unwrap().into();
    keygen(&plan, "memory");
}

#[test]
fn a_profile_that_is_none_is_named_with_what_to_do() {
    let shell = Shell::new();
    shell.write("bad.json", b"{\"format\": \"poem\"}");
    let plan = ["plan", "--scheme", "bgv", "--depth", "1", "--insecure"];
    let object = shell.fail(&[&plan[..], &["--profile", "bad.json"]].concat());
    assert!(error(&object, "profile").contains("bad.json"));
    // The one of this machine, which nobody named.
    let isa = shell.succeed(&["info"])["isa"].as_str().unwrap().to_owned();
    let path = format!("data/synchromesh/profile-{isa}.json");
    std::fs::create_dir_all(shell.path("data/synchromesh")).unwrap();
    shell.write(&path, b"\xff");
    let object = shell.fail_in("data", &plan);
    assert!(error(&object, "profile").contains(&path), "{object}");
    assert!(object["error"]["remedy"].as_str().unwrap().contains("tune"), "{object}");
}
